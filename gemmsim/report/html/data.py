"""Collects the data of the HTML page: the JSON report, and the data that the page draws."""

from __future__ import annotations

from dataclasses import asdict
from enum import IntEnum
from typing import Any

from gemmsim.analysis.code.instruction_costs import InstructionCost, instruction_costs
from gemmsim.analysis.code.live_registers import live_registers
from gemmsim.analysis.code.reuse import reuse
from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.hardware.memory_flow import memory_flow
from gemmsim.analysis.hardware.utilisation import utilisations
from gemmsim.analysis.limits.occupancy_cliffs import Cliffs, cliffs
from gemmsim.isa.program import SourceLine
from gemmsim.report.former import in_short, moves
from gemmsim.report.html.access_data import Lists, block_data, sample_data
from gemmsim.report.html.terms import terms
from gemmsim.report.json import as_dict
from gemmsim.report.layout.data import plain
from gemmsim.report.layout.words import moved
from gemmsim.report.metrics import METRICS
from gemmsim.report.report import Report
from gemmsim.support.version import MODEL_VERSION

CONTEXT_LINES = 2  # source lines shown before and after those that made code
MOST_LINES = 20_000  # source lines shown of one file


class Detail(IntEnum):
    """How much of the machine code and of the threads goes into the page; each leaves out more than its predecessor."""

    FULL = 0
    EXECUTED_CODE = 1
    NO_CODE = 2
    NO_THREADS = 3


def page_data(report: Report, detail: Detail = Detail.FULL) -> dict[str, Any]:
    """Return the data that the web page shows, as plain dicts and lists.

    "report" is what `--format json` prints. "lists" holds lists of numbers, to which "samples" and "block" refer by
    index. `detail` says what of "code" and "block" is left out.
    """
    evidence = report.evidence
    lists = Lists()
    costs = instruction_costs(evidence)
    live = live_registers(evidence.program) or (0,) * len(evidence.program.instructions)
    used = reuse(evidence)
    view = report.block_view
    data = {
        "report": as_dict(report),
        "gpu": _gpu(report),
        "busy": [asdict(use) for use in utilisations(evidence)],
        "memory": asdict(memory_flow(evidence)),
        "cliffs": asdict(_cliffs(evidence)),
        "reuse": asdict(used) | {"products_a_word": used.products_a_word} if used else None,
        "source": _source(report, costs, live),
        "code": [_code(cost, live[cost.index]) for cost in _shown(costs, detail)],
        "code_left_out": len(costs) - len(_shown(costs, detail)),
        "samples": [sample_data(sample, report, lists) for sample in report.access_samples],
        "tile_maps": [asdict(one) for one in report.tile_maps],
        "block": block_data(view, lists, detail < Detail.NO_THREADS) if view else None,
        "lists": lists.rows,
        "terms": terms(report),
        "former": _former(report),
        "groups": {name: METRICS[name].section if name in METRICS else "other" for name in evidence.counters},
    }
    found: dict[str, Any] = plain(data)
    return found


def _former(report: Report) -> dict[str, Any] | None:
    if report.former is None:
        return None
    evidence = report.evidence
    found = moves(report.former, evidence.counters, evidence.timing.stalls)
    known = {*evidence.counters, *evidence.timing.stalls, *report.former.values}
    return {
        "sentence": in_short(report.former, evidence.counters, MODEL_VERSION),
        "moves": [(one.name, one.before, one.now, moved(one.before or 0, one.now or 0)) for one in found],
        "same": len(known) - len(found),
    }


def _cliffs(evidence: Evidence) -> Cliffs:
    registers, threads = evidence.program.registers, evidence.threads_per_block
    return cliffs(evidence.occupancy, registers, evidence.shared_bytes, threads, evidence.gpu)


def _gpu(report: Report) -> dict[str, Any]:
    sm = report.evidence.gpu.sm
    return {
        "sms": sm.count,
        "max_warps": sm.max_warps,
        "max_blocks": sm.max_blocks,
        "unified_bytes": report.evidence.gpu.l1.unified_bytes,
    }


def _shown(costs: tuple[InstructionCost, ...], detail: Detail) -> list[InstructionCost]:
    if detail >= Detail.NO_CODE:
        return []
    return [cost for cost in costs if detail == Detail.FULL or cost.executed]


def _code(cost: InstructionCost, live: int) -> list[Any]:
    """Return one instruction as a list, without the zeros at its end.

    The list is [index, text, executed, live registers, stall share, stall, requests, sectors, wavefronts, conflicts].
    """
    row: list[Any] = [cost.index, cost.text, cost.executed, live, round(cost.stall_share, 7), cost.stall]
    row += [cost.requests, cost.sectors, cost.wavefronts, cost.conflicts]
    while len(row) > 3 and not row[-1]:
        row.pop()
    return row


def _source(report: Report, costs: tuple[InstructionCost, ...], live: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return an entry for each source file, the file with most stalls first; instructions without a line come last.

    "text" holds the lines from the first to the last that made code. "lines" holds, for each line that made code, its
    instructions, the sums of their costs, and the most registers that are live at one of them.
    """
    by_line: dict[SourceLine | None, list[InstructionCost]] = {}
    for cost in costs:
        by_line.setdefault(cost.line, []).append(cost)
    files: dict[str | None, list[dict[str, Any]]] = {}
    for line, members in by_line.items():
        files.setdefault(line.file if line else None, []).append(
            _line(line, members, max(live[cost.index] for cost in members))
        )
    found = []
    for file, rows in files.items():
        lines = report.evidence.program.source.get(file, "").splitlines() if file else []
        first = max(0, min(row["line"] for row in rows) - 1 - CONTEXT_LINES)
        last = min(max(row["line"] for row in rows) + CONTEXT_LINES, first + MOST_LINES)
        found.append(
            {
                "file": file.replace("\\", "/").rpartition("/")[2] if file else "",
                "first": first + 1,
                "text": lines[first:last],
                "lines": sorted(rows, key=lambda row: int(row["line"])),
            }
        )
    return sorted(found, key=lambda one: (not one["file"], -sum(row["stall_share"] for row in one["lines"])))


def _line(line: SourceLine | None, members: list[InstructionCost], live: int) -> dict[str, Any]:
    reasons: dict[str, float] = {}
    for cost in members:
        reasons[cost.stall] = reasons.get(cost.stall, 0.0) + cost.stall_share
    stall = max(reasons, key=lambda reason: reasons[reason])
    return {
        "line": line.line if line else 0,
        "instructions": [cost.index for cost in members],
        "executed": sum(cost.executed for cost in members),
        "live": live,
        "stall_share": round(sum(cost.stall_share for cost in members), 7),
        "stall": stall,
        "requests": sum(cost.requests for cost in members),
        "sectors": sum(cost.sectors for cost in members),
        "wavefronts": sum(cost.wavefronts for cost in members),
        "conflicts": sum(cost.conflicts for cost in members),
    }
