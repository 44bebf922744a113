"""Makes documents of sections and tables, and renders them as plain text, Markdown and HTML."""
