"""The hardware of one SM, each unit once: plain functions over records (`gemmsim.native.records`).

Python runs them as they stand, and numba compiles the same source; `simpy_drive` and `native_drive` of the package
above call them. Only `scheduler.turn` and the functions of `blocks` are called from there, the others by one another.
"""
