"""Everything about Nsight Compute: our metrics, how it is called, how its files are read, and their comparison.

`metrics.py` chooses metrics, `profile.py` runs `ncu`, `raw_page.py` and `launches.py` read what it writes, and
`comparison.py` shows a user's own results beside a prediction.
"""
