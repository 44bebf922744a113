"""Renders sections as plain text, Markdown and HTML."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence

from .sections import Section, Table

TITLE = "Accuracy"
WIDTH = 120
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto; }
th, td { padding: 0.15em 0.8em 0.15em 0; text-align: left; border-bottom: 1px solid #ddd; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
svg, img { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } th, td { border-color: #444; } }
"""


def text(sections: Sequence[Section]) -> str:
    """Render the sections as plain text; only tables may be wider than WIDTH columns."""
    parts = []
    for section in sections:
        parts.append(section.title.upper())
        parts += [
            textwrap.fill(paragraph, WIDTH, initial_indent="  ", subsequent_indent="  ") for paragraph in section.text
        ]
        if section.table:
            parts.append(_columns(section.table))
        parts.append("")
    return "\n".join(parts)


def _columns(table: Table) -> str:
    widths = [max(len(row[i]) for row in (table.columns, *table.rows)) for i in range(len(table.columns))]
    lines = []
    for row in (table.columns, *table.rows):
        cells = [
            cell.rjust(width) if i in table.numeric else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def markdown(sections: Sequence[Section], made_by: str, title: str = TITLE) -> str:
    """Render the sections as Markdown under the heading `title`; `made_by` is the command line that made them."""
    parts = [f"# {title}", "", f"Generated: `{made_by}`. Do not edit.", ""]
    for section in sections:
        parts += [f"## {section.title}", ""]
        for paragraph in section.text:
            parts += [textwrap.fill(paragraph, WIDTH, break_long_words=False), ""]
        if section.table:
            parts += [*markdown_table(section.table), ""]
    return "\n".join(parts)


def markdown_table(table: Table) -> list[str]:
    """Render a table as lines of Markdown."""
    rule = ["---:" if i in table.numeric else "---" for i in range(len(table.columns))]
    rows = [[cell.replace("|", "\\|") for cell in row] for row in (table.columns, tuple(rule), *table.rows)]
    return ["| " + " | ".join(row) + " |" for row in rows]


def page(sections: Sequence[Section], plots: Mapping[str, str]) -> str:
    """Render an HTML page that needs no other file, with `plots` (title -> SVG) above the sections."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{TITLE}</title><style>{STYLE}</style><h1>{TITLE}</h1>"
    ]
    for title, svg in plots.items():
        parts.append(f"<h2>{html.escape(title)}</h2>{svg}")
    for section in sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in section.text]
        if section.table:
            parts.append(_html_table(section.table))
    return "\n".join(parts) + "\n"


def _html_table(table: Table) -> str:
    def line(row: Sequence[str], tag: str) -> str:
        marks = (" class=n" if i in table.numeric else "" for i in range(len(row)))
        cells = (f"<{tag}{mark}>{html.escape(cell)}</{tag}>" for cell, mark in zip(row, marks, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    return "<table>" + line(table.columns, "th") + "".join(line(row, "td") for row in table.rows) + "</table>"
