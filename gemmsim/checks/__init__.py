"""What a Report is expected to say: its quantities by name, comparisons with limits, and baselines.

`gemmsim check` and the pytest plugin use this package.
"""
