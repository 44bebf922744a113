"""Sections and tables, and their rendering as plain text, Markdown and HTML; all studies share them."""
