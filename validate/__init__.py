"""Checks gemmsim against real GPUs: records, measuring tools and comparisons (installed as `gemmsim_validate`)."""
