"""Writes the explanations behind the page's question marks: entries of the glossary, with the numbers of this run."""

from __future__ import annotations

from typing import Any

from gemmsim.report.glossary.entries import GLOSSARY, Entry, Kind
from gemmsim.report.glossary.values import Value, fill, values_of, worked_lines
from gemmsim.report.report import Report


def terms(report: Report) -> dict[str, dict[str, Any]]:
    """Return {name: {title, unit, text}} of stall reasons, terms, and the metrics of the report.

    The value of "text" is a list of pairs (heading, text).
    """
    values = values_of(report)
    counters = report.evidence.counters
    return {
        name: _term(entry, values) for name, entry in GLOSSARY.items() if entry.kind != Kind.METRIC or name in counters
    }


def _term(entry: Entry, values: dict[str, Value]) -> dict[str, Any]:
    pieces = (
        ("", entry.definition),
        ("How", entry.formula),
        ("Here", "; ".join(worked_lines(entry, values))),
        ("Good", entry.good),
        ("To do", fill(entry.fix, values) or ""),
    )
    return {"title": entry.title, "unit": entry.unit, "text": [piece for piece in pieces if piece[1]]}
