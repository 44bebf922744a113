"""Finds the source lines of a run that contribute most to an entry's number."""

from __future__ import annotations

import re

from gemmsim.analysis.code.instruction_costs import waits_of_instructions
from gemmsim.analysis.code.source_lines import LineTraffic, by_line, line_text, source_line
from gemmsim.report.glossary.entries import Entry
from gemmsim.report.layout.words import number
from gemmsim.report.report import Report
from gemmsim.sm.types import STALL_REASONS
from gemmsim.support.plurals import plural

MOST_LINES = 3
LEAST_SHARE = 0.01  # of the waiting; lines with less are left out
_STALLED = re.compile(r"issue_stalled_(\w+)_per_issue")
_ACCESS = re.compile(r"mem_(global|local|shared)(?:_op_(ld|st|atom|red))?")


def places(entry: Entry, report: Report) -> list[str]:
    """Return one text for each of the source lines that contribute most to the entry's number, the largest first.

    An entry whose number cannot be split by source line has none.
    """
    stalled = _STALLED.search(entry.value_name)
    if stalled:
        return _waiting(report, STALL_REASONS.index(stalled.group(1)))
    access = _ACCESS.search(entry.name)
    return _accesses(report, access.group(1), access.group(2)) if access else []


def _waiting(report: Report, reason: int) -> list[str]:
    """Return a text for each source line at which warps waited most for a stall reason.

    `reason` is its index in `STALL_REASONS`.
    """
    program = report.evidence.program
    held: dict[str, float] = {}
    text: dict[str, str] = {}
    samples = waits_of_instructions(report.evidence)[:, reason]
    for instruction, cycles in zip(program.instructions, samples, strict=True):
        line = source_line(program, instruction)
        where = f"line {line.line}" if line else instruction.mnemonic
        held[where] = held.get(where, 0.0) + float(cycles)
        text[where] = line_text(program, line)
    total = sum(held.values())
    most = sorted(held.items(), key=lambda item: -item[1])[:MOST_LINES]
    return [
        f"{100 * cycles / total:.0f} % at {where}{_quoted(text[where])}"
        for where, cycles in most
        if total and cycles >= LEAST_SHARE * total
    ]


def _accesses(report: Report, space: str, op: str | None) -> list[str]:
    rows = [row for row in by_line(report.evidence) if row.space == space and _is_op(row, op)]
    rows.sort(key=lambda row: -max(row.sectors, row.wavefronts))
    return [f"{row.where}: {row.mnemonic}, {_cost(row)}{_quoted(row.text)}" for row in rows[:MOST_LINES]]


def _is_op(row: LineTraffic, op: str | None) -> bool:
    return op is None or row.op == op or (op == "ld" and row.op == "ldgsts" and row.space == "global")


def _cost(row: LineTraffic) -> str:
    if row.space in ("shared", "dshared"):
        rest = f"{_of(row.wavefronts, 'wavefront')}, {_of(row.conflicts, 'conflict')}"
    else:
        rest = f"{_of(row.sectors, 'sector')}, {number(row.ideal_sectors)} if packed"
    return f"{_of(row.requests, 'request')}, {rest}"


def _of(count: float, noun: str) -> str:
    return plural(count, noun, number(count))


def _quoted(text: str) -> str:
    return f": {text}" if text else ""
