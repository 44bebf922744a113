"""Fits parameters of the timing model to the measured times of records."""
