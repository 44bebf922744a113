"""A timeline as one HTML file that needs nothing else: a canvas to zoom into, and its data as JSON."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

from gemmsim.report.timeline.letters import STATES, spoken
from gemmsim.report.timeline.types import TimelineReport, Window, within
from gemmsim.sm.timeline import LEVELS, WarpStay
from gemmsim.sm.types import STALL_REASONS

MOST_INTERVALS = 150_000  # under 2 MB
_SCRIPTS = ("model.js", "draw.js", "interact.js")
# What could close the element that holds the data.
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def render(report: TimelineReport, window: Window) -> str:
    script = '"use strict";\n(() => {\n' + "\n".join(_text(name) for name in _SCRIPTS) + "})();\n"
    data = json.dumps(_data(report, window), separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
    style = _text("style.css")
    pieces = {
        "@TITLE@": html.escape(report.title),
        "@STYLE_HASH@": _hash(style),
        "@SCRIPT_HASH@": _hash(script),
        "@STYLE@": style,
        "@SCRIPT@": script,
        "@DATA@": data,
    }
    page = _text("template.html")
    for mark in pieces:  # cut at the marks first: what is put in may hold one
        page = page.replace(mark, f"\0{mark}\0")
    return "".join(pieces.get(part, part) for part in page.split("\0"))


def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As Content-Security-Policy names the one inline element that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(report: TimelineReport, window: Window) -> dict[str, Any]:
    shown = window.cycles < report.timeline.cycles
    part = f" Shown: cycles {window.first:,} to {window.stop:,}." if shown else ""
    return {
        "scope": f"{report.scope[0].upper()}{report.scope[1:]}.{part}",
        "first": window.first,
        "stop": window.stop,
        "reasons": [[reason, spoken(reason), *STATES[reason]] for reason in STALL_REASONS],
        "levels": list(LEVELS),
        "code": [[text.sass, text.line, text.source] for text in report.instructions],
        "warps": [warp for stay in report.timeline.warps if (warp := _warp(report, stay, window)) is not None],
    }


def _warp(report: TimelineReport, stay: WarpStay, window: Window) -> list[Any] | None:
    """Name, sub-partition, first cycle, [cycles, reason, instruction] * n, [begin, cycles, instruction, level] * m."""
    states, memory = within(stay.states, window), within(stay.memory, window)
    if not len(states):
        return None
    first = int(states[0, 0])
    states[:, 0] = states[:, 1] - states[:, 0]
    memory[:, 1] -= memory[:, 0]
    return [
        report.warp_name(stay),
        stay.sub_partition,
        first,
        states[:, [0, 2, 3]].reshape(-1).tolist(),
        memory.reshape(-1).tolist(),
    ]
