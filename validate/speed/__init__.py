"""Measures how long predictions take, how much memory they need, and how long each step takes."""
