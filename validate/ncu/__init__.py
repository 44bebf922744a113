"""Nsight Compute: which metrics we ask it for, how it is called, how its files are read, and how they compare.

`metrics.py` chooses metrics, `profile.py` runs `ncu`, `raw_page.py` and `launches.py` read what it writes, and
`comparison.py` shows a user's own results beside a prediction.
"""
