"""Lays out text of at most 80 columns: tables, indented paragraphs, bars."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 80  # columns of a terminal
INDENT = "  "
BODY = WIDTH - len(INDENT)  # columns below a heading
GAP = "  "  # between the columns of a table


def table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str, width: int = BODY) -> list[str]:
    """Lay out a table with aligned columns; return its lines, none where there are no rows.

    align  "<" or ">" for each column
    width  the last column is cut where a line would have more characters
    """
    if not rows:
        return []
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row in cells:
        parts = [f"{text:{side}{size}}" for text, side, size in zip(row, align, widths, strict=True)]
        line = GAP.join(parts).rstrip()
        lines.append(line if len(line) <= width else line[: width - 2].rstrip() + "..")
    return lines


def indented_table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Lay out a table as `table` does; return its lines, each with `INDENT` before it."""
    return [f"{INDENT}{line}" for line in table(head, rows, align)]


def paragraph(text: str) -> list[str]:
    """Wrap `text` into lines of at most `WIDTH` columns, without indentation."""
    return textwrap.wrap(text, WIDTH)


def indented(text: str) -> list[str]:
    """Wrap and indent `text`; the lines after the first are indented further."""
    return textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 3)


def bar(share: float, width: int) -> str:
    """Draw a bar of hashes, as long as `share` (0 to 1) of `width` columns; at least one where the share is not 0."""
    filled = min(width, round(share * width))
    return "#" * max(filled, 1 if share > 0 else 0)
