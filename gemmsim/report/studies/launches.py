"""Renders the reports of several launches that follow one another: a summary table, and each report on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gemmsim.report import json as report_json
from gemmsim.report import text as report_text
from gemmsim.report.layout.data import csv_text, json_text
from gemmsim.report.layout.text import indented, paragraph, table
from gemmsim.report.layout.words import duration
from gemmsim.report.report import Report
from gemmsim.support.plurals import plural
from gemmsim.support.version import MODEL_VERSION

SCHEMA_VERSION = 1
_LEGEND = (
    "time: without launch overhead. L2: how it begins (empty, as the launch before left it, or again as an identical "
    "launch leaves it). blocks: how many were executed. C: whether it was checked and is right."
)
_L2_BEGINS = {"cold": "empty", "warm": "again", "continued": "as left"}
_VERIFIED = {True: "yes", False: "NO", None: "-"}


def time_us(report: Report) -> float:
    """Return the time of a launch without its launch overhead, in microseconds."""
    timing = report.evidence.timing
    return timing.cycles / timing.sm_clock_hz * 1e6


def rows(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return a row of numbers for each launch, in order. `time_us` leaves out the launch overhead."""
    total = sum(map(time_us, reports))
    return [
        {
            "launch": number,
            "kernel": report.labels.kernel,
            "grid": "x".join(map(str, report.evidence.grid)),
            "block": "x".join(map(str, report.evidence.block)),
            "time_us": time_us(report),
            "share_pct": 100 * time_us(report) / total,
            "dram_read_bytes": report.evidence.counters["dram__bytes_read.sum"],
            "dram_write_bytes": report.evidence.counters["dram__bytes_write.sum"],
            "l2_begins": report.evidence.caches,
            "blocks_executed": report.sampling.blocks_executed,
            "blocks_total": report.sampling.blocks_total,
            "bottleneck": report.bottleneck.kind,
            "verified": report.verified.ok,
        }
        for number, report in enumerate(reports, 1)
    ]


def render_text(reports: Sequence[Report], each: bool = False) -> str:
    """List the launches, their times and what they move; with `each`, every launch's own report follows."""
    if not reports:
        return ""
    first, found = reports[0], rows(reports)
    gpu = first.evidence.gpu
    total = sum(row["time_us"] for row in found)
    overhead = gpu.launch.overhead_us * len(found)
    launches = plural(len(found), "launch")
    lines = paragraph(f"{launches} on {gpu.title} ({gpu.arch}): predicted, not measured")
    lines += ["", f"time      : {duration(total)}, and {duration(overhead)} of launch overhead, {launches}"]
    head = ("", "kernel", "grid", "time", "share", "DRAM read", "written", "L2", "blocks", "C")
    cells = [
        (
            str(row["launch"]),
            row["kernel"][:20],
            row["grid"],
            duration(row["time_us"]),
            f"{row['share_pct']:.1f}%",
            f"{row['dram_read_bytes'] / 1e6:.2f} MB",
            f"{row['dram_write_bytes'] / 1e6:.2f} MB",
            _L2_BEGINS[row["l2_begins"]],
            "all" if row["blocks_executed"] == row["blocks_total"] else f"{row['blocks_executed']}",
            _VERIFIED[row["verified"]],
        )
        for row in found
    ]
    lines += ["", *table(head, cells, "><<>>>><>>")]
    lines += ["", *paragraph(_LEGEND)]
    lines += ["", *(line for note in _notes(reports) for line in indented(f"* {note}"))]
    text = "\n".join(lines).rstrip() + "\n"
    if each:
        for number, report in enumerate(reports, 1):
            text += f"\n{'=' * 78}\nLAUNCH {number}\n{'=' * 78}\n{report_text.render(report)}"
    return text


def _notes(reports: Sequence[Report]) -> list[str]:
    """Return what was assumed for each launch besides what holds for all: "launch 2: ..."."""
    found: dict[str, list[int]] = {}
    for number, report in enumerate(reports, 1):
        for note in (*report.sampling.notes, *report.notes):
            found.setdefault(note, []).append(number)
    return [
        f"{'all launches' if len(which) == len(reports) else 'launch ' + ', '.join(map(str, which))}: {note}"
        for note, which in found.items()
    ]


def render_json(reports: Sequence[Report], each: bool = True) -> str:
    """Render the launches as JSON: the rows, each with its launch's report by `report.schema.json`."""
    del each  # the form of the data does not depend on it
    found = rows(reports)
    data = {
        "schema_version": SCHEMA_VERSION,
        "model_version": MODEL_VERSION,
        "gpu": reports[0].evidence.gpu.name if reports else None,
        "time_us": sum(row["time_us"] for row in found),
        "launch_overhead_us": sum(report.evidence.gpu.launch.overhead_us for report in reports),
        "launches": [row | {"report": report_json.as_dict(report)} for row, report in zip(found, reports, strict=True)],
    }
    return json_text(data)


def render_csv(reports: Sequence[Report], each: bool = False) -> str:
    """Render a row for each launch as CSV."""
    del each
    return csv_text(rows(reports))


RENDERERS: dict[str, Callable[[Sequence[Report], bool], str]] = {
    "text": render_text,
    "csv": render_csv,
    "json": render_json,
}
