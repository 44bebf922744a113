"""Runs kernels of public repositories, which nobody here wrote, and says which of them compute what they should."""
