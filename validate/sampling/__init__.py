"""Holds samples of blocks against full executions, for kernels that take their tiles in many orders."""
