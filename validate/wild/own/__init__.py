"""Kernels and programs of gemmsim's own that the manifest names."""
