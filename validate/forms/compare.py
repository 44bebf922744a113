"""Compares what the simulator computes for each form with what a GPU has computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gemmsim.support.errors import GemmsimError

from .bundle import Compiled, Words
from .simulate import simulated

_SHOWN = 3


def compared(arch: str, compiled: Sequence[Compiled], measured: Mapping[str, Words]) -> dict[str, Any]:
    """Return a document for JSON: of each form "equal", "differs" (in how many of how many words, and the first of
    them, ours and the GPU's), "refused" (why), or "not measured"."""
    rows = [_compared(arch, one, measured) for one in compiled]
    return {"arch": arch, "count": dict(Counter(row["status"] for row in rows)), "forms": rows}


def _compared(arch: str, one: Compiled, measured: Mapping[str, Words]) -> dict[str, Any]:
    row: dict[str, Any] = {"form": one.form.name}
    if one.form.name not in measured:
        return row | {"status": "not measured"}
    try:
        ours = simulated(arch, one)
    except GemmsimError as error:
        return row | {"status": "refused", "why": str(error)}
    theirs = measured[one.form.name]
    wrong = np.argwhere(ours != theirs)
    if not len(wrong):
        return row | {"status": "equal"}
    shown = [[*map(int, at), f"{ours[tuple(at)]:#010x}", f"{theirs[tuple(at)]:#010x}"] for at in wrong[:_SHOWN]]
    return row | {"status": "differs", "wrong": len(wrong), "of": ours.size, "first": shown}
