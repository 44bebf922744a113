"""Fits parameters of the timing model to the times of records."""
