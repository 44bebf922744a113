"""Predictions held against records: replay, errors, figures of accuracy, and their rendering."""
