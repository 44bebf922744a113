"""Lays out text: tables, indented paragraphs, bars.

Text has 80 columns, wherever it goes; only a terminal that is wider gets more (`use_columns`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextvars import ContextVar

NARROW, WIDE = 80, 120  # columns that text has at least, and at most
INDENT = "  "
GAP = "  "  # between the columns of a table


_COLUMNS: ContextVar[int] = ContextVar("columns", default=NARROW)


def use_columns(columns: int) -> None:
    """Let text have so many columns from now on, or the nearest number from NARROW to WIDE."""
    _COLUMNS.set(min(max(columns, NARROW), WIDE))


def width() -> int:
    """The columns of a line."""
    return _COLUMNS.get()


def body() -> int:
    """The columns of a line below a heading."""
    return width() - len(INDENT)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str, width: int | None = None) -> list[str]:
    """Lay out a table with aligned columns; return its lines, none where there are no rows.

    align  "<" or ">" for each column
    width  the last column is cut where a line would have more characters; None: more than `body()`
    """
    if not rows:
        return []
    cells, most = [head, *rows], width or body()
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row in cells:
        parts = [f"{text:{side}{size}}" for text, side, size in zip(row, align, widths, strict=True)]
        line = GAP.join(parts).rstrip()
        lines.append(line if len(line) <= most else line[: most - 2].rstrip() + "..")
    return lines


def indented_table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Lay out a table as `table` does; return its lines, each with `INDENT` before it."""
    return [f"{INDENT}{line}" for line in table(head, rows, align)]


def paragraph(text: str) -> list[str]:
    """Wrap `text` into lines of at most `width()` columns, without indentation."""
    return textwrap.wrap(text, width())


def indented(text: str) -> list[str]:
    """Wrap and indent `text`; the lines after the first are indented further."""
    return textwrap.wrap(text, width(), initial_indent=INDENT, subsequent_indent=INDENT * 3)


def bar(share: float, width: int) -> str:
    """Draw a bar of hashes, as long as `share` (0 to 1) of `width` columns; at least one where the share is not 0."""
    filled = min(width, round(share * width))
    return "#" * max(filled, 1 if share > 0 else 0)
