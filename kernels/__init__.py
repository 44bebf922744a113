"""The ladder: one readable numba.cuda kernel a file. Installed as gemmsim_kernels."""
