"""Renders a table, and text below it, as HTML: a page of its own that fetches nothing, or a part for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.2rem auto; max-width: 1160px; padding: 0 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #8886; padding: .25rem .6rem; text-align: left; white-space: nowrap; }
td.num { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; font-size: .85rem; }
"""
_WIDEST = 60  # characters of a cell


def table_page(title: str, rows: Sequence[Mapping[str, Any]], text: str, whole: bool = True) -> str:
    """Render HTML in which every text is escaped.

    rows   of the table; its columns are all keys, in the order in which they first occur
    text   what stands below the table as it is
    whole  whether the result is a page of its own
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(_cell(row.get(name)) for name in columns)}</tr>" for row in rows)
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
