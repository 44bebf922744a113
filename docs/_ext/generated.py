"""Parts of pages that are made from the package itself: a line `% generated: NAME` of a page becomes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import commands
import presets
import schemas
import words

_PLACE = re.compile(r"^% generated: (\S+)$", re.MULTILINE)

GENERATORS: dict[str, Callable[[], str]] = {
    "cli": commands.gemmsim,
    "cli-validate": commands.gemmsim_validate,
    "glossary-terms": words.terms,
    "glossary-stalls": words.stalls,
    "metrics": words.metrics,
    "schema-report": lambda: schemas.markdown("report"),
    "schema-comparison": lambda: schemas.markdown("comparison"),
    "schema-sweep": lambda: schemas.markdown("sweep"),
    "schema-sensitivity": lambda: schemas.markdown("sensitivity"),
    "gpu-values": presets.markdown,
}


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}


def _fill(app: Any, document: str, source: list[str]) -> None:
    source[0] = _PLACE.sub(lambda match: GENERATORS[match[1]](), source[0])
