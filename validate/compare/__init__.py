"""Holds predictions against records: replays records, judges the errors, and renders figures of accuracy."""
