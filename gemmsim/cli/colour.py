"""Colours text for a terminal, line by line, by what a line says.

It adds control sequences alone, so that a coloured report reads as the plain one does. click, which is imported anyway,
has the few styles that this takes.
"""

from __future__ import annotations

import os
import re
from typing import TextIO

import click

_HEADING = re.compile(r"[A-Z][A-Z0-9 ,:.%/()-]*")
_BAR = re.compile(r"(?<=  )#+(?=  |$)")
_WORDS = (
    (re.compile(r"^FAIL\b|(?<=  )FAIL$"), {"fg": "red", "bold": True}),
    (re.compile(r"^ok(?=  )"), {"fg": "green"}),
    (re.compile(r"(?<=^verified  : )NO\b"), {"fg": "red", "bold": True}),
    (re.compile(r"(?<=^verified  : )yes\b"), {"fg": "green"}),
)
_LABEL_COLUMNS = 12  # of the verdict: "bottleneck: "


def wanted(stream: TextIO) -> bool:
    """Return whether a stream shows colours: a terminal that can, of a user who wants them (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str) -> str:
    """Colour a text report: headings, the bottleneck, titles of advice, bars, and what holds or fails."""
    lines, heading, bottleneck = [], "", False
    for line in text.splitlines():
        bottleneck = line.startswith("bottleneck") or (bottleneck and line.startswith(" " * _LABEL_COLUMNS))
        if _HEADING.fullmatch(line) and len(line) > 1:
            heading = line
            lines.append(click.style(line, bold=True))
        elif bottleneck:
            label, said = line[:_LABEL_COLUMNS], line[_LABEL_COLUMNS:]
            lines.append(label + click.style(said, fg="yellow", bold=True))
        elif heading == "WHAT TO CHANGE" and line.startswith("  * "):
            lines.append(click.style(line, fg="yellow"))
        else:
            lines.append(_words(line))
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")


def _words(line: str) -> str:
    for pattern, style in _WORDS:
        line = pattern.sub(lambda found, style=style: click.style(found[0], **style), line)  # type: ignore[misc]
    return _BAR.sub(lambda found: click.style(found[0], fg="cyan"), line)
