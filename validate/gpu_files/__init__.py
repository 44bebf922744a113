"""Finds the preset of a real GPU, and writes GPU files with values that were measured or fitted."""
