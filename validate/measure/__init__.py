"""Kernels on a real GPU, through numba.cuda and the CUDA driver: results, times, counters, block placement.

`prepare` compiles cases into a bundle, without a GPU; everything else runs on the GPU's machine and needs only
numba-cuda, cuda-bindings and NumPy there.
"""
