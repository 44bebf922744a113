"""Versions that every report carries."""

__version__ = "0.1.0"
MODEL_VERSION = 1  # raised whenever a prediction changes for the same input
