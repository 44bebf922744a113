"""Measures how long predictions take, how much memory they need, and where their time goes."""
