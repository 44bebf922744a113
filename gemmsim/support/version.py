"""Defines the versions of gemmsim and of its models, which every report states."""

__version__ = "0.1.0"
# Raised whenever a prediction changes for the same input; validate/predictions.py checks that with a few launches.
MODEL_VERSION = 44
