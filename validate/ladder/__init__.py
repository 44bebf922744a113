"""The measured ladder as a table, from records."""
