"""Docstrings as reStructuredText: prose stays prose, aligned columns become literal blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

_MARKUP = re.compile(r"([\\*|_])")
_COLUMNS = re.compile(r"\S {2,}\S")
_CODE = re.compile(r"(`[^`]+`)")


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rst(lines)


def to_rst(lines: list[str]) -> list[str]:
    """Paragraphs whose lines are indented, or have columns, keep their layout."""
    out: list[str] = []
    for paragraph in _paragraphs(lines):
        if any(line.startswith(" ") or _COLUMNS.search(line) for line in paragraph):
            out += ["::", "", *(f"    {line}" for line in paragraph), ""]
        else:
            out += [*map(_prose, paragraph), ""]
    return out


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            yield list(group)


def _prose(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(f"`{part}`" if _CODE.fullmatch(part) else _MARKUP.sub(r"\\\1", part) for part in parts)
