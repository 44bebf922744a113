"""Measures kernels on a real GPU, through numba.cuda and the CUDA driver: C, times, counters and placement of blocks.

`prepare.py` compiles cases into a bundle, for which no GPU is needed. Everything else runs on the GPU's machine and
needs only numba-cuda, cuda-bindings and NumPy there.
"""
