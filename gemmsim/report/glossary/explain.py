"""An entry of the glossary as text and JSON, with the numbers of a run where there is one."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from gemmsim.report.glossary.entries import Entry, Kind, of_kind
from gemmsim.report.glossary.places import places
from gemmsim.report.glossary.values import values_of, worked_lines
from gemmsim.report.layout.table import number
from gemmsim.report.report import Report
from gemmsim.support.provenance import Provenance

WIDTH = 80
INDENT = "  "


def render_text(entry: Entry, report: Report | None = None) -> str:
    """ASCII, at most 80 columns but for names that are longer."""
    lines = [entry.title] if entry.title == entry.name else [entry.title, f"{INDENT}{entry.name}{_unit(entry)}"]
    sections = [
        ("What it is", [entry.definition]),
        ("How it is worked out", [entry.formula]),
        (f"In this run: {_launch(report)}", _numbers(entry, report)) if report else ("", []),
        ("What is good", [entry.good]),
        ("What to do about it", [entry.fix]),
        ("See also", [", ".join(entry.see)] if entry.see else []),
        ("Sources", list(entry.sources)),
    ]
    for heading, body in sections:
        if body:
            lines += ["", *textwrap.wrap(heading, WIDTH, subsequent_indent=INDENT)]
            for paragraph in body:
                lines += _wrapped(paragraph)
    return "\n".join(lines) + "\n"


def render_json(entry: Entry, report: Report | None = None) -> str:
    fields: dict[str, Any] = {
        "name": entry.name,
        "kind": str(entry.kind),
        "title": entry.title,
        "unit": entry.unit,
        "definition": entry.definition,
        "formula": entry.formula,
        "good": entry.good,
        "fix": entry.fix,
        "see": list(entry.see),
        "sources": list(entry.sources),
        "aliases": list(entry.aliases),
    }
    if report is not None:
        values = values_of(report)
        value = values.get(entry.value_name)
        fields["run"] = {
            "launch": _launch(report),
            "value": value,
            "provenance": None if value is None else _provenance(entry, report),
            "worked": worked_lines(entry, values),
            "places": places(entry, report),
        }
    return json.dumps(fields, indent=2, allow_nan=False) + "\n"


def render_index() -> str:
    """Every stall reason and term, with the first sentence of what it is."""
    lines = ["gemmsim explain NAME, of a metric (gemmsim list metrics) or one of these"]
    for kind, heading in ((Kind.STALL, "STALL REASONS"), (Kind.TERM, "TERMS")):
        lines += ["", heading]
        for entry in of_kind(kind):
            lines += textwrap.wrap(
                f"{entry.name}: {entry.definition.partition('. ')[0].rstrip('.')}",
                WIDTH,
                initial_indent=INDENT,
                subsequent_indent=INDENT * 3,
            )
    return "\n".join(lines) + "\n"


def _unit(entry: Entry) -> str:
    return f" [{entry.unit}]" if entry.unit and entry.kind == Kind.METRIC else ""


def _launch(report: Report) -> str:
    labels = report.labels
    size = f", M={labels.m} N={labels.n} K={labels.k}" if labels.m else ""
    tunables = "".join(f", {key}={value}" for key, value in labels.tunables.items())
    return f"{labels.kernel}{size}{tunables} on {report.evidence.gpu.title}"


def _numbers(entry: Entry, report: Report) -> list[str]:
    values = values_of(report)
    lines = []
    value = values.get(entry.value_name)
    if isinstance(value, (int, float)):
        unit = f" {entry.unit}" if entry.unit else ""
        lines.append(f"{number(value)}{unit} ({_provenance(entry, report)})")
    elif entry.value_name:
        lines.append("not predicted: gemmsim does not count it; hardware does")
    lines += worked_lines(entry, values)
    lines += places(entry, report)
    return lines or ["this run has no number of its own for it"]


def _provenance(entry: Entry, report: Report) -> str:
    """Stall reasons come from the timing model and are not among the counters: they are known as well as cycles are."""
    known = report.evidence.provenance
    return str(known.get(entry.value_name, known.get("sm__cycles_active.max", Provenance.MODELLED)))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )
