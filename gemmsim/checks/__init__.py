"""Expectations of a Report: named quantities, comparisons, baselines; for `gemmsim check` and the pytest plugin."""
