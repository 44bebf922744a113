"""Guesses from the counters why a predicted time is wrong.

Each rule is a function that returns a line naming a cause, or "" where the rule does not hold. The first rule that
holds gives the guess.
"""

from __future__ import annotations

from collections.abc import Callable

from .judge import Judged, Number
from .metrics import BY_NAME, LAUNCH_TIME

STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
LARGE_ERROR = 0.05  # relative error of a counter that can explain the error of a time
LARGE_STALL = 0.5  # error of a stall reason, in cycles per instruction, that can explain the error of a time


def guess(row: Judged) -> str:
    """Return the likely cause of the error of a case's time, as one line that is never empty."""
    return next((text for rule in RULES if (text := rule(row))), "no counter of this record tells")


def _other_code(row: Judged) -> str:
    off = [n for n in row.numbers if n.kind == "exact" and not n.agrees and n.name.startswith("smsp__inst")]
    return f"other machine code: {off[0].name} differs by {off[0].error_pct:+.1f} %" if off else ""


def _overhead(row: Judged) -> str:
    time, overhead = row.time, row.prediction.overhead_us
    if time and overhead > 0.3 * time.measured:
        return f"launch overhead: {overhead:.1f} us of it are predicted, {time.measured:.1f} us were measured in all"
    return ""


def _warm(row: Judged) -> str:
    """Name warm caches as the cause where the time of the profiled launch is predicted with at most half the error.

    Launches that were timed in a row are predicted with warm caches, the profiled launch with cold caches.
    """
    profiled = _number(row, LAUNCH_TIME)
    if not profiled or not row.time or not row.case.warm(row.time_way):
        return ""
    if abs(profiled.error) > 0.5 * abs(row.time.error):
        return ""
    return f"warm caches: measured back to back; under the profiler, cold, the error is {profiled.error_pct:+.1f} %"


def _traffic(row: Judged) -> str:
    """Name the modelled counter of memory traffic that is most wrong in the same direction as the time."""
    if not row.time:
        return ""
    off = [
        n
        for n in row.numbers
        if n.kind == "modelled" and not n.points and n.name != LAUNCH_TIME and n.error * row.time.error > LARGE_ERROR**2
    ]
    worst = max(off, key=lambda n: abs(n.error), default=None)
    if worst and abs(worst.error) > max(LARGE_ERROR, 0.5 * abs(row.time.error)):
        return f"traffic: {BY_NAME[worst.name].label} off by {worst.error_pct:+.1f} %"
    return ""


def _stalls(row: Judged) -> str:
    """Name the stall reason whose cycles per instruction are most wrong in the same direction as the time."""
    differences = [
        (ours - row.case.counters[name], reason, ours, row.case.counters[name])
        for reason, ours in row.prediction.stalls.items()
        if (name := STALLED.format(reason)) in row.case.counters
    ]
    if not differences or not row.time:
        return ""
    sign = 1 if row.time.error > 0 else -1
    difference, reason, ours, theirs = max(differences, key=lambda entry: sign * entry[0])
    if sign * difference < LARGE_STALL:
        return ""
    return f"warps wait for {reason} {ours:.1f} cycles an instruction, {theirs:.1f} on the GPU"


def _clock(row: Judged) -> str:
    settings = row.case.data.get("settings", ())
    if row.case.kind == "published" and not any(text.startswith("clock.") for text in settings):
        return f"the clock is not known; predicted bottleneck: {row.prediction.bottleneck}"
    return ""


def _bottleneck(row: Judged) -> str:
    return f"predicted bottleneck: {row.prediction.bottleneck}" if row.prediction.bottleneck else ""


def _number(row: Judged, name: str) -> Number | None:
    return next((n for n in row.numbers if n.name == name), None)


RULES: tuple[Callable[[Judged], str], ...] = (
    _other_code,
    _overhead,
    _warm,
    _traffic,
    _stalls,
    _clock,
    _bottleneck,
)
