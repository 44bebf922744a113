"""Measures what a GPU preset needs, such as latencies, bandwidths and pipes, by a small kernel for each.

A group of microbenchmarks is a module with three functions: `kernels(arch)` gives PTX by entry name, `run(bench, arch)`
takes raw samples on a GPU, and `values(raw)` turns the samples into values of a preset. Compiling needs no GPU, running
needs no compiler, and the analysis needs neither.
"""
