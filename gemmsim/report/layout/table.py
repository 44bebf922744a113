"""Plain columns of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

GAP = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str, width: int) -> list[str]:
    """Aligned columns, `align` one of < and > each; the last column is cut where the line would exceed `width`."""
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


def number(value: float | None) -> str:
    """Whole numbers with separators, others with four significant digits; unknown and infinite in words."""
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "inf"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def bar(share: float, width: int) -> str:
    """`share` of `width` as hashes, at least one where it is not 0."""
    filled = min(width, round(share * width))
    return "#" * max(filled, 1 if share > 0 else 0)
