"""Holds the records, which are measurements of real GPUs, and the code that reads, writes and predicts them.

`case.py` reads a record as a `Case`, `files.py` handles the files, `replay.py` makes the launch that predicts a case,
`select.py` chooses cases, `ways.py` names the ways of timing, and `store.py` puts new measurements in place.
`record.schema.json` defines the form of a record.
"""
