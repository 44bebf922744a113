"""Small kernels that each measure one thing that a GPU preset needs: latencies, bandwidths, pipes and the like.

A group is a module with three functions: `kernels(arch)` gives PTX by entry name, `run(bench, arch)` takes raw samples
on a GPU, and `values(raw)` says what these mean. Compiling needs no GPU, running needs no compiler, and the analysis
needs neither.
"""
