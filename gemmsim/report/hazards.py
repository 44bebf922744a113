"""Renders the findings of the sanitizer as text, JSON, and dicts and lists."""

from __future__ import annotations

import os
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemmsim.report.layout.data import json_text
from gemmsim.report.layout.text import width
from gemmsim.report.report import Report
from gemmsim.support.plurals import plural
from gemmsim.trace.sanitizer.findings import Defect, Finding, Sanitized, Site

# After one of these defects a launch fails on a GPU, so that no prediction of it would come true.
FATAL = frozenset({Defect.OUT_OF_BOUNDS, Defect.MISALIGNED, Defect.FAULT})


def fatal(outcome: Sanitized) -> bool:
    """Tell whether the sanitized launch would fail on a GPU before its end."""
    return outcome.stopped or any(finding.defect in FATAL for finding in outcome.findings)


def shown_path(file: str) -> str:
    """Return a source file's path as reports show it: relative to the working directory if it lies below that."""
    path = Path(file)
    return os.path.relpath(path) if path.is_absolute() and path.is_relative_to(Path.cwd()) else file


def place(site: Site) -> str:
    """Say where the site of a finding is: kernels/tiled.py:33, or its offset in the machine code."""
    return f"{shown_path(site.line.file)}:{site.line.line}" if site.line else site.where


def one_line(finding: Finding) -> str:
    """Render a finding in one line: its defect, source lines and threads."""
    sites = [f"{place(s)} (thread {_dims(s.thread)} {s.does})" for s in (finding.at, finding.other) if s]
    where = f" at {_address(finding)}" if finding.address is not None else ""
    return f"{finding.defect}{where}: {' and '.join(sites)}, block {_dims(finding.block)}, {_times(finding.count)}"


def lines(finding: Finding, columns: int | None = None) -> list[str]:
    """Render all that is known of a finding, in lines of at most so many columns; None: those that text has."""
    most = columns or width()
    head = f"{finding.defect}: {finding.sentence}"
    where = f"block {_dims(finding.block)}, {_times(finding.count)}"
    if finding.address is not None:
        where = f"{plural(finding.width_bytes, 'byte')} at {_address(finding)}, {where}"
    body = textwrap.wrap(head, most, subsequent_indent="    ")
    for text in (where, finding.detail):
        if text:
            body += textwrap.wrap(text, most, initial_indent="    ", subsequent_indent="      ")
    for site in (finding.at, finding.other):
        if site:
            who = f"thread {_dims(site.thread)} (warp {site.warp}, lane {site.lane}) {site.does}"
            body += textwrap.wrap(f"{place(site)}: {who}", most, initial_indent="  ", subsequent_indent="      ")
            body.append(f"      {site.text or site.instruction.text}"[:most].rstrip())
    return body


def summary(outcome: Sanitized) -> str:
    """Say in one line which blocks were executed, and how many findings there are."""
    n, executed = len(outcome.findings), outcome.blocks
    looked = "every block" if executed == outcome.blocks_total else f"{executed} of {outcome.blocks_total} blocks"
    found = "nothing found" if n == 0 else plural(n, "finding")
    more = f", and {outcome.lost} that there was no room to keep" if outcome.lost else ""
    early = ", the last of them not to its end" if outcome.stopped else ""
    return f"sanitizer: {found}{more}; {looked} executed{early}"


def render(outcome: Sanitized) -> str:
    """Render all findings as text, what was not looked for, and the summary in the last line."""
    blocks = ["\n".join(lines(finding)) for finding in outcome.findings]
    blocks += [textwrap.fill(note, width()) for note in outcome.notes]
    return "\n\n".join([*blocks, summary(outcome)]) + "\n"


def with_findings(report: Report, outcome: Sanitized) -> Report:
    """Return the report with what the sanitizer found, and its notes among the report's."""
    said = tuple(map(one_line, outcome.findings))
    return replace(report, findings=said, sanitized=outcome, notes=(*report.notes, *outcome.notes))


def render_json(outcome: Sanitized) -> str:
    """Render the findings alone as JSON, for a launch that would fail and therefore has no report."""
    return json_text({"sanitizer": as_dict(outcome)})


def as_dict(outcome: Sanitized) -> dict[str, Any]:
    """Return the value of the key "sanitizer" of a JSON report, which `report.schema.json` describes."""
    return {
        "blocks_executed": outcome.blocks,
        "blocks_total": outcome.blocks_total,
        "stopped": outcome.stopped,
        "lost": outcome.lost,
        "notes": list(outcome.notes),
        "findings": [_finding(finding) for finding in outcome.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "defect": str(finding.defect),
        "sentence": finding.sentence,
        "block": list(finding.block),
        "space": finding.space,
        "address": finding.address,
        "width_bytes": finding.width_bytes,
        "detail": finding.detail,
        "count": finding.count,
        "at": _site(finding.at),
        "other": _site(finding.other) if finding.other else None,
    }


def _site(site: Site) -> dict[str, Any]:
    return {
        "does": site.does,
        "file": shown_path(site.line.file) if site.line else None,
        "line": site.line.line if site.line else None,
        "text": site.text,
        "instruction": site.instruction.text,
        "thread": list(site.thread),
        "warp": site.warp,
        "lane": site.lane,
    }


def _address(finding: Finding) -> str:
    address = finding.address or 0
    if finding.space == "global":
        return f"{address:#x} in global memory"
    return f"byte {address} of {finding.space} memory"


def _dims(dims: tuple[int, int, int]) -> str:
    return f"({dims[0]},{dims[1]},{dims[2]})"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
