"""Defines assertions on a predicted launch.

A failure names the source lines and draws the lanes and their sectors or banks.
"""

from __future__ import annotations

from gemmsim.analysis.code.source_lines import LineTraffic
from gemmsim.calls.trace import Trace
from gemmsim.checks.selection import Selection, everything, select
from gemmsim.report import hazards
from gemmsim.report.hazards import shown_path
from gemmsim.trace.sanitizer.findings import Defect, Finding

_RACES = frozenset({Defect.RACE, Defect.UNWAITED_COPY})


def assert_coalesced(trace: Trace, at: int | str | None = None, excess: float = 0.25) -> None:
    """Fails where a global access asks for more than (1 + excess) times the sectors that its packed bytes would fill.

    at      check only the source lines with this number, or with this text in them
    excess  a share of the sectors that the packed bytes would fill; the default accepts rows that start in the middle
            of a sector and need 5 sectors where 4 would do
    """
    __tracebackhide__ = True
    selection, rows = _accesses(trace, at, "global")
    bad = [row for row in rows if row.sectors > (1 + excess) * row.ideal_sectors]
    said = "{sectors:.4g} sectors a request where {ideal:.4g} would do"
    _assert_no_rows(f"not coalesced: {len(bad)} of {len(rows)} accesses", selection, bad, said)


def assert_no_bank_conflicts(trace: Trace, at: int | str | None = None) -> None:
    """Fails where an access to shared memory takes more wavefronts than its width needs.

    at  check only the source lines with this number, or with this text in them
    """
    __tracebackhide__ = True
    selection, rows = _accesses(trace, at, "shared")
    bad = [row for row in rows if row.conflicts]
    said = "{conflicts:,.0f} bank conflicts, {wavefronts:.4g} wavefronts a request"
    _assert_no_rows(f"bank conflicts: {len(bad)} of {len(rows)} accesses", selection, bad, said)


def assert_occupancy(trace: Trace, min: float, achieved: bool = False) -> None:
    """Fails where the theoretical occupancy, or the `achieved` one, is below `min` percent."""
    __tracebackhide__ = True
    occupancy = trace.report.evidence.occupancy
    value = trace.report.evidence.timing.achieved_occupancy_pct if achieved else occupancy.theoretical_pct
    if value >= min:
        return
    program = trace.report.evidence.program
    limits = {
        "blocks": (occupancy.limit_blocks, "block slots"),
        "warps": (occupancy.limit_warps, "warp slots"),
        "registers": (occupancy.limit_registers, f"registers ({program.registers} a thread)"),
        "shared_mem": (occupancy.limit_shared_mem, f"shared memory ({occupancy.allocated_shared_bytes:,} B a block)"),
    }
    lines = [f"{'achieved' if achieved else 'theoretical'} occupancy is {value:.4g}%, less than {min:g}%"]
    lines += [
        f"  {count:>3} blocks an SM by {text}{'  <- limit' if name in occupancy.limiters else ''}"
        for name, (count, text) in limits.items()
    ]
    raise AssertionError("\n".join(lines))


def assert_no_races(trace: Trace) -> None:
    """Fails for a race on shared memory between barriers, and for the use of a copy that was not waited for."""
    __tracebackhide__ = True
    _assert_none(trace, [finding for finding in trace.sanitized.findings if finding.defect in _RACES])


def assert_clean(trace: Trace) -> None:
    """Fails for anything that the sanitizer finds: races, bad addresses, unwritten data read, uneven barriers."""
    __tracebackhide__ = True
    _assert_none(trace, list(trace.sanitized.findings))


def assert_correct(trace: Trace) -> None:
    """Fails unless C was checked and is what NumPy computes in double precision."""
    __tracebackhide__ = True
    if trace.report.verified.ok is not True:
        raise AssertionError(f"the result is not verified: {trace.report.verified.text}")


def assert_no_spills(trace: Trace) -> None:
    """Fails for any access to local memory. Spilled registers lie there, but also arrays of a thread."""
    __tracebackhide__ = True
    selection, rows = _accesses(trace, None, "local")
    head = f"local memory is used: {trace.report.evidence.program.local_bytes} bytes a thread"
    _assert_no_rows(head, selection, rows, "{requests:,.0f} requests")


def _accesses(trace: Trace, at: int | str | None, space: str) -> tuple[Selection, list[LineTraffic]]:
    """Return the lines that `at` selects (None: all), and the traffic of their instructions that access `space`.

    space  "global", "local" or "shared"
    """
    selection = everything(trace.report) if at is None else select(trace.report, at)
    return selection, [row for row in selection.rows if row.space == space and row.requests]


def _assert_no_rows(head: str, selection: Selection, rows: list[LineTraffic], form: str) -> None:
    """Fails where `rows` is not empty. The message names and draws each row's instruction, the worst first.

    head  first line of the message
    form  format of the text for a row; {requests}, {sectors}, {ideal}, {wavefronts} and {conflicts} are filled in
    """
    __tracebackhide__ = True
    if not rows:
        return
    lines = [head]
    for row in sorted(rows, key=lambda row: -row.sectors - row.wavefronts):
        numbers = {
            "requests": row.requests,
            "sectors": row.sectors / row.requests,
            "ideal": row.ideal_sectors / row.requests,
            "wavefronts": row.wavefronts / row.requests,
            "conflicts": row.conflicts,
        }
        where = f"{shown_path(row.line.file)}:{row.line.line}" if row.line else "?"
        lines += ["", f"{where} ({row.mnemonic}): {form.format(**numbers)}"]
        lines += [f"    {row.text}"[:80]] if row.text else []
        lines += [f"  {line}" for line in selection.drawing(row)]
    raise AssertionError("\n".join(lines))


def _assert_none(trace: Trace, findings: list[Finding]) -> None:
    __tracebackhide__ = True
    if findings:
        blocks = ["\n".join(hazards.lines(finding)) for finding in findings]
        raise AssertionError("\n\n".join([hazards.summary(trace.sanitized), *blocks]))
