"""Sections and tables, of which documents are made, and their rendering as plain text, Markdown and HTML."""
