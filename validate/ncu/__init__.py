"""Works with Nsight Compute: chooses metrics, calls it, reads its files, and compares them with predictions.

`metrics.py` chooses metrics, `profile.py` runs `ncu`, `raw_page.py` and `launches.py` read what it writes, and
`comparison.py` shows a user's own results beside a prediction.
"""
