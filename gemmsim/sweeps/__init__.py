"""Predicts all combinations of tunables, sizes and GPUs in parallel, and keeps the results in a database.

Combinations that cannot launch are left out.
"""
