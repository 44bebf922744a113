"""Renders a Sensitivity as text, CSV, JSON and HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gemmsim.analysis.studies.sensitivity import Effect, Sensitivity
from gemmsim.gpu.units import short
from gemmsim.report.layout.data import csv_text, json_text
from gemmsim.report.layout.table_page import table_page
from gemmsim.report.layout.text import GAP, bar, body, indented, indented_table, paragraph, table
from gemmsim.report.layout.words import duration, launch_name
from gemmsim.support.version import MODEL_VERSION

SCHEMA_VERSION = 1
LEAST_PCT = 0.05  # of the time; a smaller change is shown as none
BAR = 12  # columns of the longest bar


def render_text(found: Sensitivity) -> str:
    """List the numbers of the GPU that change the time, the largest saving first, then the others.

    The text is ASCII of at most 80 columns.
    """
    launch = f"{launch_name(found.labels)} on {found.gpu}"
    lines = paragraph(f"{launch}: {duration(found.time_us)}, predicted, not measured")
    lines += ["", f"EACH NUMBER {found.asked_pct:g} % BETTER, ALONE"]
    scatter = max(found.scatter_pct, LEAST_PCT)
    shown = [effect for effect in found.effects if effect.saved_pct > scatter]
    most = max((effect.saved_pct for effect in shown), default=0.0)
    head = ("GPU file key", "from", "to", "unit", "", "time")
    cells = [(key_in_file(effect.key), *_change(effect), f"-{effect.saved_pct:.1f}%") for effect in shown]
    room = (
        body() - max(map(len, table(head, cells, "<>><>>")), default=0) - len(GAP)
    )  # long keys leave less for the bars
    bars = [bar(effect.saved_pct / most, min(BAR, room)) for effect in shown]
    rows = [(*row, one) for row, one in zip(cells, bars, strict=True)]
    lines += indented_table((*head, ""), rows, "<>><>><") or indented("none of them saves time")
    within = [effect for effect in found.effects if LEAST_PCT <= abs(effect.saved_pct) <= scatter]
    if within:
        text = (
            f"Better numbers also made it slower, by up to {scatter:.1f} %: another order in which warps come first. "
            f"These change the time by no more than that:"
        )
        lines += ["", "WITHIN THE SCATTER OF THE SCHEDULE", *indented(text), *_by_section([e.key for e in within])]
    without = [effect.key for effect in found.effects if abs(effect.saved_pct) < LEAST_PCT]
    if without:
        lines += ["", f"LESS THAN {LEAST_PCT} % OF THE TIME", *_by_section(without)]
    if found.skipped:
        lines += ["", "NOT TRIED"]
        reasons: dict[str, list[str]] = {}
        for key, why in found.skipped.items():
            reasons.setdefault(why, []).append(key_in_file(key))
        for why, keys in reasons.items():
            lines += indented(f"{', '.join(keys)}: {why}")
    note = (
        "More is better of sizes, rates and numbers of units, less of latencies, intervals and overheads. "
        "Numbers that must be whole change by one at least. Latencies in cycles stay as they are where a clock changes."
    )
    lines += ["", *paragraph(note)]
    return "\n".join(lines) + "\n"


def render_csv(found: Sensitivity) -> str:
    return csv_text(rows(found))


def rows(found: Sensitivity) -> list[dict[str, Any]]:
    """Return a row for each number of the GPU."""
    return [_row(effect) for effect in found.effects]


def render_json(found: Sensitivity) -> str:
    """Render the sensitivity as JSON, by the schema in `sensitivity.schema.json`."""
    labels = found.labels
    data = {
        "schema_version": SCHEMA_VERSION,
        "model_version": MODEL_VERSION,
        "kernel": labels.kernel,
        "m": labels.m,
        "n": labels.n,
        "k": labels.k,
        "tunables": labels.tunables,
        "gpu": found.gpu,
        "asked_pct": found.asked_pct,
        "time_us": found.time_us,
        "scatter_pct": found.scatter_pct,
        "effects": rows(found),
        "skipped": [{"key": key, "reason": why} for key, why in found.skipped.items()],
    }
    return json_text(data)


def key_in_file(key: str) -> str:
    """Return the key as GPU files and --set write it: "l2.size" for "l2.size_bytes"."""
    section, _, name = key.rpartition(".")
    return f"{section}.{short(name)}"


def _change(effect: Effect) -> tuple[str, str, str, str]:
    """Return the cells (from, to, unit, change in percent) of an effect, in the unit of the GPU file."""
    before, after = (f"{value / effect.unit_factor:.5g}" for value in (effect.before, effect.after))
    return before, after, "" if effect.unit == "1" else effect.unit, f"{effect.change_pct:+.0f}%"


def _by_section(keys: list[str]) -> list[str]:
    """Return the lines that list `keys`, with a paragraph for each section of the GPU file."""
    sections: dict[str, list[str]] = {}
    for key in keys:
        section, _, name = key_in_file(key).partition(".")
        sections.setdefault(section, []).append(name)
    lines = []
    for section, names in sections.items():
        lines += indented(f"{section}: {', '.join(names)}")
    return lines


def _row(effect: Effect) -> dict[str, Any]:
    return {"group": effect.key.split(".")[0], "set": key_in_file(effect.key)} | asdict(effect)


def title(found: Sensitivity) -> str:
    """One line: the launch, its time, and the number of the GPU that saves most."""
    first = f", most from {found.effects[0].key}: -{found.effects[0].saved_pct:.1f} %" if found.effects else ""
    return f"{launch_name(found.labels)} on {found.gpu}: {duration(found.time_us)}{first}"


def render_html(found: Sensitivity) -> str:
    """Render a page of its own: a table with a bar for what each number saves, and below it the text."""
    return table_page(title(found), rows(found), render_text(found), bars="saved_pct")


RENDERERS: dict[str, Callable[[Sensitivity], str]] = {
    "text": render_text,
    "csv": render_csv,
    "json": render_json,
    "html": render_html,
}
