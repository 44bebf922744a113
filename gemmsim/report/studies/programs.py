"""Renders the launches of a program: a table with a row for each, and each launch's report on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gemmsim.report import json as report_json
from gemmsim.report.layout.data import csv_text, json_text
from gemmsim.report.layout.table_page import table_page
from gemmsim.report.layout.text import indented, paragraph, table
from gemmsim.report.layout.words import duration
from gemmsim.report.report import Report
from gemmsim.support.plurals import plural
from gemmsim.support.version import MODEL_VERSION

SCHEMA_VERSION = 1
_LEGEND = (
    "time: with launch overhead. TFLOP/s: floating-point operations executed, - where there are few. all: whether each "
    "block was executed, so that results are complete; times of large launches come from a sample of the blocks. line: "
    "of the program, where it made the launch."
)
_UNREAD_LEGEND = (
    "all -: its results were not executed, because nothing has read them: they were overwritten, freed, or left at the "
    "end."
)
COMPLETE, SAMPLED, UNREAD = "all", "sample", "not executed"
_WORDS = {COMPLETE: "yes", SAMPLED: "NO", UNREAD: "-"}


@dataclass(frozen=True)
class ProgramLaunch:
    """One launch that a program made.

    report      its prediction
    results     COMPLETE: every block was executed, and memory holds all that it stored; SAMPLED: only a sample was, as
                it is too large; UNREAD: only a sample was, as nothing has read its results
    host_line   "script.py:12", the line of the program that made it; "" where that is not known
    timed_as    number of the earlier launch, from 1, whose time this one has, because nothing that decides its time is
                different; None where it was timed itself
    """

    report: Report
    results: str = COMPLETE
    host_line: str = ""
    timed_as: int | None = None

    @property
    def duration_us(self) -> float:
        """The predicted time in microseconds, launch overhead included."""
        return self.report.evidence.timing.duration_us

    @property
    def tflops(self) -> float | None:
        """As `Report.tflops`."""
        return self.report.tflops


def rows(launches: Sequence[ProgramLaunch]) -> list[dict[str, Any]]:
    """Return a row of numbers for each launch, in order."""
    return [
        {
            "launch": number,
            "kernel": one.report.labels.kernel,
            "grid": "x".join(map(str, one.report.evidence.grid)),
            "block": "x".join(map(str, one.report.evidence.block)),
            "time_us": one.duration_us,
            "tflops": one.tflops,
            "bottleneck": one.report.bottleneck.kind,
            "l2_begins": one.report.evidence.caches,
            "blocks_executed": one.report.sampling.blocks_executed,
            "blocks_total": one.report.sampling.blocks_total,
            "complete": one.results == COMPLETE,
            "results": one.results,
            "timed_as": one.timed_as,
            "findings": len(one.report.findings),
            "from": one.host_line,
        }
        for number, one in enumerate(launches, 1)
    ]


def render_text(launches: Sequence[ProgramLaunch], beside: Sequence[str] = ()) -> str:
    """List the launches; launches of one line that are alike and follow one another share a row.

    beside  what is to be said of work that the program did without a launch
    """
    if not launches:
        return "\n".join(["the program launched no kernel", *beside]) + "\n"
    gpu, found = launches[0].report.evidence.gpu, rows(launches)
    total = sum(row["time_us"] for row in found)
    lines = paragraph(f"{_count(len(found))} on {gpu.title} ({gpu.arch}), {duration(total)}: predicted, not measured")
    head = ("", "kernel", "grid", "block", "time", "TFLOP/s", "bottleneck", "all", "line")
    files = {row["from"].rpartition(":")[0] for row in found}
    cells = [_cells(list(alike), len(files) == 1) for _, alike in groupby(found, _alike)]
    lines += ["", *table(head, cells, "><<<>><<<"), "", *paragraph(_LEGEND), ""]
    if any(one.results == UNREAD for one in launches):
        lines += [*paragraph(_UNREAD_LEGEND), ""]
    for number, one in enumerate(launches, 1):
        where = f" (from {one.host_line})" if one.host_line else ""
        lines += [line for text in one.report.findings for line in indented(f"* launch {number}{where}: {text}")]
    lines += [line for note in (*_notes(launches), *beside) for line in indented(f"* {note}")]
    return "\n".join(lines).rstrip() + "\n"


def _alike(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for key, value in row.items() if key not in ("launch", "timed_as"))


def _cells(alike: list[dict[str, Any]], one_file: bool) -> tuple[str, ...]:
    row = alike[0]
    number = str(row["launch"]) if len(alike) == 1 else f"{row['launch']}-{alike[-1]['launch']}"
    tflops = row["tflops"]
    return (
        *(number, row["kernel"][:16], _short(row["grid"]), _short(row["block"]), duration(row["time_us"])),
        "-" if tflops is None or tflops < 0.005 else f"{tflops:.2f}",
        row["bottleneck"].replace("_", " "),
        _WORDS[row["results"]],
        row["from"].rpartition(":")[2] if one_file else row["from"],
    )


def _short(dims: str) -> str:
    """Leave out the trailing dimensions that are 1, but for the first."""
    while dims.endswith("x1"):
        dims = dims[:-2]
    return dims


def _count(number: int) -> str:
    return f"{number} launch{'es' * (number > 1)}"


def _notes(launches: Sequence[ProgramLaunch]) -> list[str]:
    """Return what was assumed: "launch 2: ..."; of many launches the first are named."""
    found: dict[str, list[int]] = {}
    for number, one in enumerate(launches, 1):
        for note in (*one.report.sampling.notes, *one.report.notes):
            found.setdefault(note, []).append(number)
    return [f"{_named(which, len(launches))}: {note}" for note, which in found.items()]


def _named(which: Sequence[int], of: int) -> str:
    if len(which) == of:
        return "all launches"
    shown = ", ".join(map(str, which[:6]))
    return f"launch {shown} and {len(which) - 6} more" if len(which) > 6 else f"launch {shown}"


def render_json(launches: Sequence[ProgramLaunch], beside: Sequence[str] = ()) -> str:
    """Render the launches as JSON: the rows, each with its launch's report by `report.schema.json`."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "model_version": MODEL_VERSION,
        "gpu": launches[0].report.evidence.gpu.name if launches else None,
        "beside": list(beside),
        "time_us": sum(one.duration_us for one in launches),
        "launches": [
            row | {"report": report_json.as_dict(one.report)} for row, one in zip(rows(launches), launches, strict=True)
        ],
    }
    return json_text(data)


def render_csv(launches: Sequence[ProgramLaunch], beside: Sequence[str] = ()) -> str:
    """Render a row for each launch as CSV."""
    return csv_text(rows(launches))


def render_html(launches: Sequence[ProgramLaunch], beside: Sequence[str] = ()) -> str:
    """Render a page of its own: a table of the launches with a bar for each time, and below it the text."""
    return table_page(f"{plural(len(launches), 'launch')} of a program", rows(launches), render_text(launches, beside))


RENDERERS: dict[str, Callable[[Sequence[ProgramLaunch], Sequence[str]], str]] = {
    "text": render_text,
    "csv": render_csv,
    "json": render_json,
    "html": render_html,
}
