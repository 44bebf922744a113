"""Makes one HTML file that needs nothing else, from a template, its style and scripts, and the data as JSON.

The page fetches nothing. Its Content-Security-Policy names the hashes of the one style and the one script in it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

# What could close the script element that holds the data, or end a line of JavaScript.
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def web_page(package: str, scripts: Sequence[str], texts: Mapping[str, str], data: Any) -> str:
    """Return `template.html` of a package with its marks, such as @TITLE@, replaced.

    package  name of the package that holds template.html, style.css and the scripts
    scripts  file names, in the order in which they run, inside one function
    texts    mark ("TITLE" for "@TITLE@") -> plain text, which is escaped here
    data     what the scripts read; embedded as JSON
    """

    def text(name: str) -> str:
        return (files(package) / name).read_text(encoding="utf-8")

    style = text("style.css")
    script = '(() => {\n"use strict";\n' + "\n".join(map(text, scripts)) + "\n})();\n"
    pieces = {f"@{mark}@": html.escape(words) for mark, words in texts.items()} | {
        "@STYLE_HASH@": _hash(style),
        "@SCRIPT_HASH@": _hash(script),
        "@STYLE@": style,
        "@SCRIPT@": script,
        "@DATA@": embedded(data),
    }
    page = text("template.html")
    # The template is split at the marks instead of replacing one after another, since the data may hold a mark's text.
    for mark in pieces:
        page = page.replace(mark, f"\0{mark}\0")
    return "".join(pieces.get(part, part) for part in page.split("\0"))


def embedded(data: Any) -> str:
    """Render `data` as JSON that can stand inside a script element whatever its strings hold."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def _hash(text: str) -> str:
    """Return the name by which a Content-Security-Policy permits an inline element with this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
