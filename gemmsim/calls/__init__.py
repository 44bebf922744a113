"""What Python code calls: `gemmsim.analyze`, `compare`, `sweep`, `sensitivity` and `explain`.

They make the launches that the commands of the same names make, and return results that show themselves. `launches.py`
makes a launch of Python objects, `kernels.py` a kernel of a function or of source text, `studies.py` is for several
launches, `shown.py` for results.
"""
