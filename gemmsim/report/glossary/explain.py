"""Renders an entry of the glossary as text and JSON, with the numbers of a run where there is one."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict

from gemmsim.report.glossary.entries import Entry, Kind, of_kind
from gemmsim.report.glossary.places import places
from gemmsim.report.glossary.values import values_of, worked_lines
from gemmsim.report.layout.text import INDENT, indented, width
from gemmsim.report.layout.words import launch_name, number
from gemmsim.report.report import Report
from gemmsim.support.provenance import Provenance


def render_text(entry: Entry, report: Report | None = None) -> str:
    """Render the entry as ASCII text of at most 80 columns; only a name that is longer makes a longer line."""
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
            lines += ["", *textwrap.wrap(heading, width(), subsequent_indent=INDENT)]
            for paragraph in body:
                lines += _wrapped(paragraph)
    return "\n".join(lines) + "\n"


def render_json(entry: Entry, report: Report | None = None) -> str:
    """Render the entry's fields as JSON; with a report, the key "run" holds the numbers of its launch."""
    fields = asdict(entry)
    del fields["worked"]  # a template; "run" has it filled in
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
    """List all stall reasons and terms, each with the first sentence of its definition."""
    lines = ["gemmsim explain NAME, of a metric (gemmsim list metrics) or one of these"]
    for kind, heading in ((Kind.STALL, "STALL REASONS"), (Kind.TERM, "TERMS")):
        lines += ["", heading]
        for entry in of_kind(kind):
            lines += indented(f"{entry.name}: {entry.definition.partition('. ')[0].rstrip('.')}")
    return "\n".join(lines) + "\n"


def _unit(entry: Entry) -> str:
    return f" [{entry.unit}]" if entry.unit and entry.kind == Kind.METRIC else ""


def _launch(report: Report) -> str:
    return f"{launch_name(report.labels)} on {report.evidence.gpu.title}"


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
    """Return the provenance of an entry's value.

    Stall reasons come from the timing model and are no counters, so their provenance is that of the counter of cycles.
    """
    known = report.evidence.provenance
    return str(known.get(entry.value_name, known.get("sm__cycles_active.max", Provenance.MODELLED)))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, width(), initial_indent=INDENT, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )
