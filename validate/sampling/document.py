"""Makes the tables that `gemmsim-validate sampling` prints, and the same as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..documents.sections import Section, table
from .compare import SECTORS_PCT, TIME_PCT, Comparison
from .large import GOAL_SECONDS, Prediction

TITLE = "Samples of blocks against full executions"
_ERRORS = ("L1 hits", "L2", "L2 hits", "DRAM read", "DRAM write", "time")


def sections(compared: Sequence[Comparison], predicted: Sequence[Prediction]) -> list[Section]:
    """Return the document of all comparisons and large predictions."""
    found = []
    if compared:
        failed = sum(bool(one.failures) for one in compared)
        text = (
            f"{len(compared)} launches, {failed} out of bounds. Errors of the sample are in percent of the full "
            f"execution; seconds are of CPU time. Sectors may differ by "
            f"{SECTORS_PCT:g} %, time by {TIME_PCT:g} %, exact counters not at all.",
            _worst(compared),
        )
        columns = ("kernel", "tile", "size", "blocks", "exact", "wrong", *_ERRORS, "s", "full s", "out of bounds")
        rows = [_comparison_row(one) for one in compared]
        found.append(Section("Sampled against full", text, table(columns, rows, range(3, len(columns) - 1))))
        found += _details("Counters that differ", compared)
    if predicted:
        failed = sum(bool(one.failures) for one in predicted)
        slowest = max(predicted, key=lambda one: one.seconds)
        text = (
            f"{len(predicted)} launches, {failed} out of bounds; the slowest took {slowest.seconds:.1f} s "
            f"({slowest.name}), the goal is {GOAL_SECONDS:g} s.",
            "Exact counters are held to what was worked out by hand, or follows from full executions with a short K; "
            "`not exact` counts those that are not marked exact. DRAM is read at least once for each sector that the "
            "kernel reads (`least`), exactly once with an L2 that holds everything (`all read`), and at most for what "
            "L2 is asked for.",
        )
        heads = (
            "kernel",
            "tile",
            "size",
            "blocks",
            "not exact",
            "time us",
            "DRAM / least",
            "all read / least",
            "s",
            "out of bounds",
        )
        lines = [_prediction_row(one) for one in predicted]
        found.append(Section("Too large to execute in full", text, table(heads, lines, range(3, len(heads) - 1))))
        found += _details("Counters that are not as worked out", predicted)
    return found


def as_data(compared: Sequence[Comparison], predicted: Sequence[Prediction]) -> dict[str, Any]:
    """Return both lists as JSON takes them, each entry with its `failures`."""
    return {
        "compared": [asdict(one) | {"failures": one.failures} for one in compared],
        "predicted": [asdict(one) | {"failures": one.failures} for one in predicted],
    }


def _worst(compared: Sequence[Comparison]) -> str:
    """Return a sentence with the worst error of each kind, and whose it is."""
    parts = []
    for name in _ERRORS:
        of = [one for one in compared if one.errors_pct]
        if of:
            worst = max(of, key=lambda one: abs((one.errors_pct or {})[name]))
            error = (worst.errors_pct or {})[name]
            parts.append(f"{name} {error:+.1f} % ({worst.case.kernel.name}, {worst.case.tile}, {worst.case.size})")
    return "Worst: " + "; ".join(parts) + "."


def _comparison_row(one: Comparison) -> tuple[str, ...]:
    errors = one.errors_pct or {}
    return (
        one.case.kernel.name,
        str(one.case.tile),
        one.case.size,
        f"{one.blocks}/{one.grid_blocks}",
        f"{one.exact}/{one.full_exact}",
        str(len(one.wrong_exact or {})),
        *(f"{errors[name]:+.1f}" if name in errors else "" for name in _ERRORS),
        f"{one.seconds:.1f}",
        f"{one.full_seconds:.1f}",
        "; ".join(one.failures),
    )


def _prediction_row(one: Prediction) -> tuple[str, ...]:
    sectors = (one.dram_sectors, one.roomy_sectors)
    least = [f"{number / one.compulsory:.2f}" if one.compulsory else "" for number in sectors]
    return (
        one.name,
        str(one.tile) if one.tile else "",
        one.size,
        f"{one.blocks}/{one.grid_blocks}",
        str(len(one.inexact)),
        f"{one.time_us:.0f}",
        *least,
        f"{one.seconds:.1f}",
        "; ".join(one.failures),
    )


def _details(title: str, found: Sequence[Comparison] | Sequence[Prediction]) -> list[Section]:
    """Return a table of the counters that should be equal and are not; no section where all are equal."""
    rows = []
    for one in found:
        if isinstance(one, Comparison):
            who = (one.case.kernel.name, str(one.case.tile), one.case.size)
            kinds = [(one.wrong_exact or {}, "sampled and full"), (one.wrong_forms or {}, "full and by hand")]
        else:
            who = (one.name, str(one.tile), one.size)
            kinds = [(one.wrong_forms, "sampled and by hand")]
        for wrong, what in kinds:
            rows += [(*who, name, what, _number(ours), _number(theirs)) for name, (ours, theirs) in wrong.items()]
    columns = ("kernel", "tile", "size", "counter", "of", "first", "second")
    return [Section(title, (), table(columns, rows, (5, 6)))] if rows else []


def _number(value: float) -> str:
    """Return a count in full, a ratio with four digits behind the point."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4f}"
