"""Runs programs that use a GPU on a machine that has none: a CUDA driver that executes launches on the CPU.

The program is code that runs, with all that it does besides; so it is to be trusted as any program is.
"""
