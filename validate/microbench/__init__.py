"""Small kernels that each measure one thing a GPU preset needs: latencies, bandwidths, wavefronts, pipes, barriers.

A group is a module with `kernels(arch)`, PTX by entry name; `run(bench, arch)`, raw samples from a GPU; and
`values(raw)`, what they say. Compiling needs no GPU, running needs no compiler, and the analysis neither.
"""
