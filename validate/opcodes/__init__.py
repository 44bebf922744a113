"""Compares what gemmsim computes for each scalar instruction with a GPU, bit for bit, by one generated kernel each.

`prepare.py` makes a bundle: cubins with a kernel for each line of `instructions.txt`, and their inputs. `device.py`
runs the bundle on a GPU and keeps what the kernels stored; `simulate.py` does the same in gemmsim, and `compare.py`
tells where the two differ.
"""
