"""A Sensitivity as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gemmsim.analysis.studies.sensitivity import Effect, Sensitivity
from gemmsim.gpu.units import short
from gemmsim.report.json import plain
from gemmsim.report.layout.table import bar, table
from gemmsim.report.studies.comparison import duration
from gemmsim.support.version import MODEL_VERSION

WIDTH = 80
INDENT = "  "
SCHEMA_VERSION = 1
LEAST_PCT = 0.05  # of the time: less is shown as none
BAR = 12


def render_text(found: Sensitivity) -> str:
    """What changes the time, most first, and then what does not; ASCII, at most 80 columns."""
    size = "" if found.m is None else f", M={found.m} N={found.n} K={found.k}"
    tunables = "".join(f", {name}={value}" for name, value in found.tunables.items())
    lines = textwrap.wrap(
        f"{found.kernel}{size}{tunables} on {found.gpu}: {duration(found.time_us)}, predicted, not measured", WIDTH
    )
    lines += ["", f"EACH NUMBER {found.asked_pct:g} % BETTER, ALONE"]
    scatter = max(found.scatter_pct, LEAST_PCT)
    shown = [effect for effect in found.effects if effect.saved_pct > scatter]
    most = max((effect.saved_pct for effect in shown), default=0.0)
    rows = [
        (key_in_file(effect.key), *_change(effect), f"-{effect.saved_pct:.1f}%", bar(effect.saved_pct / most, BAR))
        for effect in shown
    ]
    head = ("GPU file key", "from", "to", "unit", "", "time", "")
    lines += [f"{INDENT}{line}" for line in table(head, rows, "<>><>><", WIDTH - len(INDENT))]
    if not rows:
        lines.append(f"{INDENT}none of them saves time")
    within = [effect for effect in found.effects if LEAST_PCT <= abs(effect.saved_pct) <= scatter]
    if within:
        text = (
            f"Better numbers also made it slower, by up to {scatter:.1f} %: another order in which warps come first. "
            f"These change the time by no more than that:"
        )
        lines += ["", "WITHIN THE SCATTER OF THE SCHEDULE", *_indented(text), *_by_section([e.key for e in within])]
    without = [effect.key for effect in found.effects if abs(effect.saved_pct) < LEAST_PCT]
    if without:
        lines += ["", f"LESS THAN {LEAST_PCT} % OF THE TIME", *_by_section(without)]
    if found.skipped:
        lines += ["", "NOT TRIED"]
        reasons: dict[str, list[str]] = {}
        for key, why in found.skipped.items():
            reasons.setdefault(why, []).append(key_in_file(key))
        for why, keys in reasons.items():
            lines += _indented(f"{', '.join(keys)}: {why}")
    note = (
        "More is better of sizes, rates and numbers of units, less of latencies, intervals and overheads. "
        "Numbers that must be whole change by one at least. Latencies in cycles stay as they are where a clock changes."
    )
    lines += ["", *textwrap.wrap(note, WIDTH)]
    return "\n".join(lines) + "\n"


def render_csv(found: Sensitivity) -> str:
    text = io.StringIO()
    rows = [_row(effect) for effect in found.effects]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: plain(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def render_json(found: Sensitivity) -> str:
    """By the schema in `sensitivity.schema.json`."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "model_version": MODEL_VERSION,
        "kernel": found.kernel,
        "m": found.m,
        "n": found.n,
        "k": found.k,
        "tunables": found.tunables,
        "gpu": found.gpu,
        "asked_pct": found.asked_pct,
        "time_us": found.time_us,
        "scatter_pct": found.scatter_pct,
        "effects": [_row(effect) for effect in found.effects],
        "skipped": [{"key": key, "reason": why} for key, why in found.skipped.items()],
    }
    return json.dumps(plain(data), indent=2, allow_nan=False) + "\n"


def key_in_file(key: str) -> str:
    """As GPU files and --set write it: "l2.size" of "l2.size_bytes"."""
    section, _, name = key.rpartition(".")
    return f"{section}.{short(name)}"


def _change(effect: Effect) -> tuple[str, str, str, str]:
    before, after = (f"{value / effect.unit_factor:.5g}" for value in (effect.before, effect.after))
    return before, after, "" if effect.unit == "1" else effect.unit, f"{effect.change_pct:+.0f}%"


def _by_section(keys: list[str]) -> list[str]:
    sections: dict[str, list[str]] = {}
    for key in keys:
        section, _, name = key_in_file(key).partition(".")
        sections.setdefault(section, []).append(name)
    lines = []
    for section, names in sections.items():
        lines += _indented(f"{section}: {', '.join(names)}")
    return lines


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 3)


def _row(effect: Effect) -> dict[str, Any]:
    return {"group": effect.key.split(".")[0], "set": key_in_file(effect.key)} | asdict(effect)


RENDERERS: dict[str, Callable[[Sensitivity], str]] = {"text": render_text, "csv": render_csv, "json": render_json}
