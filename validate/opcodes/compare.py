"""Compares two outputs of a bundle's kernels, bit for bit, and says how far apart floating-point results are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bundle import Bundle
from .cases import Case, bits_of
from .outputs import Outputs

_SHOWN = 4
_FRACTION_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def compare(bundle: Bundle, ours: Outputs, theirs: Outputs) -> dict[str, Any]:
    """Compare gemmsim's outputs with a GPU's. Returns a document for JSON.

    Its "cases" has an object for each instruction: "status" is "equal", "differs", "refused" (gemmsim does not run the
    kernel) or "not measured". A case that differs says in how many of its values ("wrong"), by how many units in the
    last place at most ("ulps", null where that means nothing), and gives examples: sources, our result and theirs.
    """
    rows = [_compared(bundle, case, ours, theirs) for case in bundle.cases]
    count = {status: sum(row["status"] == status for row in rows) for status in sorted({r["status"] for r in rows})}
    return {"arch": bundle.arch, "ours": ours.facts, "theirs": theirs.facts, "count": count, "cases": rows}


def _compared(bundle: Bundle, case: Case, ours: Outputs, theirs: Outputs) -> dict[str, Any]:
    row: dict[str, Any] = {"instruction": case.instruction, "symbol": case.symbol}
    if case.symbol in ours.failed:
        return row | {"status": "refused", "why": ours.failed[case.symbol]}
    if case.symbol not in theirs.values or case.symbol not in ours.values:
        return row | {"status": "not measured"}
    mine, other = ours.values[case.symbol], theirs.values[case.symbol]
    differs = mine != other
    if not differs.any():
        return row | {"status": "equal"}
    given = bundle.inputs(case)
    ulps = [_ulps(t, a, b) for t, a, b in zip(case.results, mine, other, strict=True)]
    known = [u for u in ulps if u is not None]
    at = np.flatnonzero(differs.any(axis=0))[:_SHOWN]
    examples = [[_hex(values[:, i]) for values in (given, mine, other)] for i in at]
    return row | {
        "status": "differs",
        "wrong": int(differs.any(axis=0).sum()),
        "of": bundle.rows,
        "ulps": max(known) if known else None,
        "examples": examples,
    }


def _ulps(type_: str, a: NDArray[np.uint64], b: NDArray[np.uint64]) -> int | None:
    """Return the largest distance of two floats in units in the last place; None where one of them alone is NaN, or for
    a type that is no float."""
    if type_.endswith("x2"):
        halves = [_ulps(type_[:-2], _half(a, shift), _half(b, shift)) for shift in (0, 16)]
        known = [h for h in halves if h is not None]
        return max(known) if len(known) == len(halves) else None
    if type_ not in _FRACTION_BITS:
        return None
    bits = bits_of(type_)
    sign = 1 << (bits - 1)
    infinity = (sign - 1) >> _FRACTION_BITS[type_] << _FRACTION_BITS[type_]
    wrong = a != b
    if ((a[wrong] & (sign - 1)) > infinity).any() or ((b[wrong] & (sign - 1)) > infinity).any():
        return None
    places = [[-(int(v) & (sign - 1)) if int(v) & sign else int(v) for v in values[wrong]] for values in (a, b)]
    return max((abs(x - y) for x, y in zip(*places, strict=True)), default=0)


def _half(values: NDArray[np.uint64], shift: int) -> NDArray[np.uint64]:
    return (values >> np.uint64(shift)) & np.uint64(0xFFFF)


def _hex(values: NDArray[np.uint64]) -> list[str]:
    return [f"{int(value):#x}" for value in values]
