"""Makes a table of the ladder's kernels, with their measured times, from records."""
