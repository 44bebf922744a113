"""Reads from a Report the quantities that an expectation can name, of the whole launch or of some source lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gemmsim.analysis.code.source_lines import LineTraffic, split
from gemmsim.analysis.verdict.spills import local_traffic
from gemmsim.checks.selection import Selection
from gemmsim.report.report import Report
from gemmsim.support.errors import GemmsimError, nearest


@dataclass(frozen=True)
class Reading:
    """The value of a quantity over a selection of source lines.

    row  the `LineTraffic` (one kind of instruction on one line) that contributes most to the value; None where the
         quantity is of the whole launch, or where no line contributes to it
    each  of a quantity whose worst value counts: all rows with their values, one for instructions that cost alike;
          those that move most come first
    """

    name: str
    value: float
    row: LineTraffic | None
    selection: Selection
    each: tuple[tuple[LineTraffic, float], ...] = ()


@dataclass(frozen=True, slots=True)
class _OfLines:
    """How a quantity of source lines is worked out from their `LineTraffic` rows, one for each kind of instruction.

    spaces   memory spaces whose accesses count: "global", "local", "shared"
    each     gives the quantity of one row
    worst    how the values of several rows are combined: their greatest where this is True, else their sum
    meaning  what the quantity is, for the user
    """

    spaces: tuple[str, ...]
    each: Callable[[LineTraffic], float]
    worst: bool
    meaning: str


_GLOBAL, _SHARED = ("global", "local"), ("shared",)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


OF_LINES = {
    "requests": _OfLines((*_GLOBAL, *_SHARED), lambda r: r.requests, False, "memory instructions of warps"),
    "sectors": _OfLines(_GLOBAL, lambda r: r.sectors, False, "32-byte sectors asked of L1"),
    "sectors_per_request": _OfLines(
        _GLOBAL, lambda r: _ratio(r.sectors, r.requests), True, "sectors an instruction of a warp, the worst"
    ),
    "sector_excess": _OfLines(
        _GLOBAL, lambda r: _ratio(r.sectors, r.ideal_sectors), True, "sectors over those packed bytes need, the worst"
    ),
    "wavefronts": _OfLines(_SHARED, lambda r: r.wavefronts, False, "shared memory wavefronts"),
    "wavefronts_per_request": _OfLines(
        _SHARED, lambda r: _ratio(r.wavefronts, r.requests), True, "shared wavefronts an instruction, the worst"
    ),
    "bank_conflicts": _OfLines(
        _SHARED, lambda r: r.conflicts, False, "shared wavefronts above the conflict-free count"
    ),
    "l2_sectors": _OfLines(_GLOBAL, lambda r: r.l2_sectors, False, "sectors sent to L2"),
}
OF_LAUNCH: dict[str, tuple[Callable[[Report], float], str]] = {
    "time_us": (lambda r: r.evidence.timing.duration_us, "time, launch overhead included"),
    "cycles": (lambda r: r.evidence.timing.cycles, "SM cycles"),
    "occupancy": (lambda r: r.evidence.occupancy.theoretical_pct, "theoretical, percent"),
    "achieved_occupancy": (lambda r: r.evidence.timing.achieved_occupancy_pct, "percent"),
    "registers": (lambda r: r.evidence.program.registers, "a thread"),
    "shared_bytes": (
        lambda r: r.evidence.program.static_shared_bytes + r.evidence.dynamic_shared_bytes,
        "a block, static and dynamic",
    ),
    "spill_sectors": (lambda r: _spilled(r), "sectors of local memory asked of L1"),
    "dram_bytes": (
        lambda r: r.evidence.counters["dram__bytes_read.sum"] + r.evidence.counters["dram__bytes_write.sum"],
        "read and written",
    ),
    "tflops": (lambda r: r.tflops or 0.0, "2 m n k operations a second, or those executed where no size is known"),
    "relative_error": (lambda r: _error(r), "of C, where it is checked"),
}


def read(selection: Selection, name: str) -> Reading:
    """Read the quantity or counter `name` over the source lines of a selection.

    Raises GemmsimError for an unknown name, and where `name` is a quantity of the whole launch but only some lines are
    selected.
    """
    report = selection.report
    if name in OF_LINES:
        return _of_lines(selection, name, OF_LINES[name])
    known = (*OF_LINES, *OF_LAUNCH)
    if name not in OF_LAUNCH and name not in report.evidence.counters:
        hint = nearest(name, (*known, *report.evidence.counters))
        raise GemmsimError(f"unknown quantity '{name}'{hint}: {', '.join(known)}, or a counter (gemmsim list metrics)")
    if selection.where:
        raise GemmsimError(
            f"{name} is of the whole launch, not of '{selection.where}': lines have {', '.join(OF_LINES)}"
        )
    value = OF_LAUNCH[name][0](report) if name in OF_LAUNCH else report.evidence.counters[name]
    return Reading(name, float(value), None, selection)


def _of_lines(selection: Selection, name: str, quantity: _OfLines) -> Reading:
    rows: Sequence[LineTraffic] = [row for row in selection.rows if row.space in quantity.spaces and row.requests]
    if not rows:
        if selection.where:
            spaces = " or ".join(quantity.spaces)
            raise GemmsimError(f"{name}: '{selection.where}' makes no access to {spaces} memory")
        return Reading(name, 0.0, None, selection)
    if not quantity.worst:
        return Reading(name, float(sum(map(quantity.each, rows))), max(rows, key=quantity.each), selection)
    single = [one for row in rows for one in split(selection.report.evidence, row)] or list(rows)
    single.sort(key=lambda row: -(row.sectors if row.space != "shared" else row.wavefronts))
    most = max(single, key=quantity.each)  # of several as bad, the one that moves most
    each = tuple((row, float(quantity.each(row))) for row in single)
    return Reading(name, float(quantity.each(most)), most, selection, each)


def _spilled(report: Report) -> float:
    local = local_traffic(report.evidence)
    return local.sectors if local else 0.0


def _error(report: Report) -> float:
    if report.verified.relative_error is None:
        raise GemmsimError(f"relative_error is not known: C was not checked ({report.verified.text})")
    return report.verified.relative_error
