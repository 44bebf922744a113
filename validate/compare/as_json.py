"""Presents a comparison as data for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from gemmsim.support.version import __version__

from ..records.case import JUDGE, STUDY
from .cause import guess
from .figures import grouped, orders, time_figures
from .halves import of_half
from .judge import Judged, Number

SCHEMA_VERSION = 1


def as_data(both: Sequence[Judged]) -> dict[str, Any]:
    """Return all that the other formats of a comparison show as data for JSON, and all numbers of cases for study."""
    summary: dict[str, Any] = {}
    judged = of_half(both, STUDY)
    if len(judged) < len(both):
        for kind, rows in grouped(of_half(both, JUDGE), lambda row: row.case.kind).items():
            figures = time_figures(rows)
            summary[f"{kind}, judge"] = {"time_pct": {**asdict(figures), "worst_case": ""} if figures else None}
    for kind, rows in grouped(judged, lambda row: row.case.kind).items():
        figures = time_figures(rows)
        summary[kind] = {
            "time_pct": asdict(figures) if figures else None,
            "order": [asdict(order) for order in orders(rows)],
        }
    return {
        "schema_version": SCHEMA_VERSION,
        "gemmsim": __version__,
        "summary": summary,
        "cases": [_case(row) for row in judged],
    }


def _case(row: Judged) -> dict[str, Any]:
    data: dict[str, Any] = {"id": row.case.id, "kind": row.case.kind, "gpu": row.case.gpu, "kernel": row.title}
    data |= {"m": row.case.m, "n": row.case.n, "k": row.case.k, "dtype": row.case.dtype}
    if row.prediction.error:
        return data | {"error": row.prediction.error}
    if row.time:
        data |= {"time": {"against": row.time_way, **_number(row.time)}, "guess": guess(row)}
    data["counters"] = {number.name: {"kind": number.kind, **_number(number)} for number in row.numbers}
    return data | {"memory_instructions": row.prediction.sass, "bottleneck": row.prediction.bottleneck}


def _number(number: Number) -> dict[str, Any]:
    data: dict[str, Any] = {"predicted": number.predicted, "measured": number.measured}
    data["error_points" if number.points else "error_pct"] = number.error_pct if isfinite(number.error) else None
    return data | ({"excuse": number.excuse} if number.excuse else {})
