"""Renders a table, and text below it, as HTML: a page of its own that fetches nothing, or a part for a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TypeGuard

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.2rem auto; max-width: 1160px; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #8886; padding: .25rem .6rem; text-align: left; white-space: nowrap; }
td.num { text-align: right; font-variant-numeric: tabular-nums; }
.bar { background: #3b82c4; height: .45rem; border-radius: 2px; margin: .1rem 0; }
td:has(.bar) { min-width: 9rem; }
th { position: sticky; top: 0; background: Canvas; }
pre { overflow-x: auto; font-size: .85rem; }
"""
_NAMES = ("name", "key", "rank", "kernel")  # columns that name a row, the best first
_WIDEST = 60  # characters of a cell


def table_page(
    title: str, rows: Sequence[Mapping[str, Any]], text: str, *, whole: bool = True, bars: str = "time_us"
) -> str:
    """Render HTML in which every text is escaped.

    rows   of the table; its columns are all keys, in the order in which they first occur, but the name and the bars
           come first, so that a narrow screen shows them
    text   what stands below the table as it is
    whole  whether the result is a page of its own
    bars   the column whose numbers are drawn, too, all on one scale; that the rows have it is not needed
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    named = [name for name in _NAMES if name in columns] or columns
    first = dict.fromkeys([*named[:1], bars] if bars in columns else named[:1])
    columns = [*first, *(name for name in columns if name not in first)]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    most = max((abs(row[bars]) for row in rows if _drawn(row.get(bars))), default=0.0)

    def cell(row: Mapping[str, Any], name: str) -> str:
        value = row.get(name)
        return _barred(value, abs(value) / most) if name == bars and most and _drawn(value) else _cell(value)

    body = "".join(f"<tr>{''.join(cell(row, name) for name in columns)}</tr>" for row in rows)
    table = f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    below = f'<pre tabindex="0">{escape(text)}</pre>'
    if not whole:
        folded = f"<details><summary>as text</summary>{below}</details>"
        return f'<div class="gemmsim"><b>{escape(title)}</b>{table}{folded}</div>'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{table}{below}</main></body></html>\n"
    )


def _drawn(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


def _barred(value: float, share: float) -> str:
    """Render a number as a cell, with a bar of this share of the longest below it."""
    length = f"{100 * share:.1f}%"
    return f'<td class="num">{value:,.6g}<div class="bar" style="width:{length}"></div></td>'


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td class="num">{value:,.6g}</td>'
    text = " ".join(f"{key}={one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)
    cut = text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
    return f'<td title="{escape(text)}">{escape(cut)}</td>' if cut != text else f"<td>{escape(text)}</td>"
