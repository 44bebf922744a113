"""Measurements of real GPUs: the files of records that ship, the code that reads and writes them, and their replay.

`case.py` reads a record as a `Case`, `files.py` handles the files, `replay.py` makes the launch that predicts a case,
`select.py` chooses cases, and `store.py` puts new measurements in place. The form is `record.schema.json`.
"""
