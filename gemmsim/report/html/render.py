"""One file: the template, its style and its script, and the data as JSON. Nothing in it is fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

from gemmsim.report.html.data import Detail, page_data
from gemmsim.report.report import Report

MOST_BYTES = 2_000_000
_SCRIPTS = (
    "core.js",
    "widgets.js",
    "verdict.js",
    "roofline.js",
    "memory.js",
    "stalls.js",
    "source.js",
    "occupancy.js",
    "threads.js",
    "lanes.js",
    "banks.js",
    "tiles.js",
    "product.js",
    "counters.js",
    "main.js",
)
# What could close the script element that holds the data, or end a JavaScript line.
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def render(report: Report) -> str:
    """The page. Of a program too large for `MOST_BYTES` the machine code that did not run is left out, then more."""
    for detail in Detail:
        page = _page(report, page_data(report, detail))
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element whatever its strings hold."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def _page(report: Report, data: dict[str, Any]) -> str:
    style = _text("style.css")
    script = '(() => {\n"use strict";\n' + "\n".join(_text(name) for name in _SCRIPTS) + "\n})();\n"
    labels = report.labels
    size = f" {labels.m} x {labels.n} x {labels.k}" if labels.m else ""
    pieces = {
        "@TITLE@": html.escape(f"{labels.kernel}{size} on {report.evidence.gpu.title}"),
        "@VERDICT@": html.escape(report.bottleneck.sentence),
        "@STYLE_HASH@": _hash(style),
        "@SCRIPT_HASH@": _hash(script),
        "@STYLE@": style,
        "@SCRIPT@": script,
        "@DATA@": embedded(data),
    }
    page = _text("template.html")
    # Split at the marks instead of replacing them one after another: the data may hold a mark's text.
    for mark in pieces:
        page = page.replace(mark, f"\0{mark}\0")
    return "".join(pieces.get(part, part) for part in page.split("\0"))


def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As Content-Security-Policy names an inline element that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
