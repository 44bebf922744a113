"""Switches off one mechanism of the timing model at a time, and shows what the errors of the times become."""
