"""Writes the outcomes of checks as text, as JSON, or as Markdown for the summary of a job."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import asdict

from gemmsim.checks.outcome import Change, Checked
from gemmsim.report.layout.text import indented_table, width
from gemmsim.report.layout.words import number

SCHEMA_VERSION = 1
_INDENT = " " * 6


def render_text(checked: Checked) -> str:
    """Write each outcome on a line, as `ok` or `FAIL` and its message. Under a failure stand its details.

    What is not as in the baseline follows as a table. The last line says how many of the expectations hold.
    """
    lines = []
    for outcome in checked.outcomes:
        head = f"{'ok' if outcome.ok else 'FAIL':<{len(_INDENT)}}{outcome.message}"
        lines += textwrap.wrap(head, width(), subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)
        lines += [f"{_INDENT}{detail}".rstrip() for detail in outcome.details]
    rows = [(*_cells(change), "" if ok else "FAIL") for change, ok in checked.changes]
    if rows:
        lines += ["", "CHANGED AGAINST THE BASELINE", *indented_table((*_HEAD, ""), rows, "<>>>><"), ""]
    return "\n".join([*lines, _summary(checked)]) + "\n"


def render_markdown(checked: Checked) -> str:
    """Write what fails, and a table of what is not as in the baseline, in GitHub's Markdown."""
    lines = [f"### gemmsim check: {_escaped(checked.launch)}", "", _summary(checked), ""]
    for outcome in checked.failed:
        line = checked.line_of(outcome)
        lines.append(f"- :x: {_escaped(outcome.message)} (`{line.file}:{line.line}`)")
    if checked.changes:
        lines += ["", "| " + " | ".join((*_HEAD, "")) + " |", "|---|--:|--:|--:|--:|---|"]
        for change, ok in checked.changes:
            lines.append("| " + " | ".join((f"`{change.quantity}`", *_cells(change)[1:], "" if ok else ":x:")) + " |")
    elif any(outcome.change for outcome in checked.outcomes):
        lines += ["", "Everything is as in the baseline."]
    return "\n".join(lines).rstrip() + "\n\n"


def _summary(checked: Checked) -> str:
    return f"{len(checked.outcomes) - len(checked.failed)} of {len(checked.outcomes)} hold"


_HEAD = ("quantity", "baseline", "now", "change", "may move")


def _cells(change: Change) -> tuple[str, ...]:
    allowed = f"{100 * change.tolerance:g}%"
    return (change.quantity, number(change.before), number(change.now), change.moved, allowed)


def _escaped(text: str) -> str:
    """Return `text` so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)


def render_json(checked: Checked) -> str:
    data = {
        "schema_version": SCHEMA_VERSION,
        "launch": checked.launch,
        "ok": checked.ok,
        "outcomes": [asdict(outcome) for outcome in checked.outcomes],
    }
    return json.dumps(data, indent=2) + "\n"
