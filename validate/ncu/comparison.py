"""Compares a launch that Nsight Compute profiled with a prediction, and makes a record of the launch."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmsim.report.metrics import METRICS
from gemmsim.support.errors import GemmsimError

from .metrics import kept_counters
from .raw_page import ProfiledLaunch


@dataclass(frozen=True)
class Row:
    """One metric, predicted and measured, in base units."""

    metric: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float | None:
        """Predicted / measured: 1 where both are 0, None where only the measured value is."""
        if self.measured == 0:
            return 1.0 if self.predicted == 0 else None
        return self.predicted / self.measured


def compared(predicted: Mapping[str, float | None], measured: Mapping[str, float]) -> list[Row]:
    """Return a row for each metric, the time in ns among them, that is both predicted and measured, as METRICS orders.

    Raises GemmsimError where no metric is both.
    """
    rows = []
    for name in (*METRICS, *sorted(set(predicted) - set(METRICS))):
        ours = predicted.get(name)
        if ours is not None and name in measured:
            rows.append(Row(name, float(ours), measured[name]))
    if not rows:
        raise GemmsimError("the file has none of the metrics that gemmsim predicts: profile with --set full")
    return rows


def table(rows: Sequence[Row]) -> str:
    """Show the rows as a table in plain text."""
    width = max(len(row.metric) for row in rows)
    lines = [f"{'metric':{width}} {'predicted':>16} {'measured':>16} {'ratio':>8}"]
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
        lines.append(f"{row.metric:{width}} {_shown(row.predicted):>16} {_shown(row.measured):>16} {ratio:>8}")
    return "\n".join(lines)


def record(launch: ProfiledLaunch, case: Mapping[str, Any], gpu: str, arch: str) -> dict[str, Any]:
    """Return the record (see record.schema.json) of an imported launch; `case` holds its id, subject and problem.

    The profiler's own time is among the counters. It was taken under the profiler's cache control, so it is not put
    into the record's `time`.
    """
    number = int(arch.removeprefix("sm_"))
    return {
        **case,
        "kind": "measured",
        "gpu": gpu,
        "date": datetime.date.today().isoformat(),
        "machine": {
            "device": launch.device or gpu,
            "compute_capability": [number // 10, number % 10],
            "driver": "unknown",
        },
        "counters": kept_counters(launch.metrics),
        "profile": {"status": "profiled", "tool": "ncu", "why": "imported; clock and cache control unknown"},
    }


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"
