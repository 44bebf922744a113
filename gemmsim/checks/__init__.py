"""Checks a Report: reads its quantities by name, and compares them with limits and with stored baselines.

`gemmsim check` and the pytest plugin use this package.
"""
