"""A user's own Nsight Compute results: a report file or a raw page, read and held against a prediction."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.report.metrics import METRICS
from gemmsim.support.errors import GemmsimError

from .counters import kept
from .ncu_csv import Profiled, parse_raw_page, unit_factor

_DIMS = ("launch__grid_dim_{}", "launch__block_dim_{}")


@dataclass(frozen=True)
class Row:
    """One metric: predicted and measured in base units; ratio predicted / measured, None where the latter is 0."""

    metric: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float | None:
        if self.measured == 0:
            return 1.0 if self.predicted == 0 else None
        return self.predicted / self.measured


def read_launches(path: Path) -> list[Profiled]:
    """The launches of a .ncu-rep (by the ncu-report wheel) or of a raw page as CSV, in order.

    Raises GemmsimError, one line, for another file or where the wheel is missing.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise GemmsimError(f"cannot read {path}: {error.strerror}") from None
    if path.suffix == ".ncu-rep":
        found = _from_report(path)
    else:
        try:
            found = parse_raw_page(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise GemmsimError(
                f"{path} is no text: give an .ncu-rep file, or what ncu --csv --page raw prints"
            ) from None
    if not found:
        raise GemmsimError(f"{path} holds no launch")
    return found


def _from_report(path: Path) -> list[Profiled]:
    try:
        import ncu_report
    except ImportError:
        raise GemmsimError(
            "reading .ncu-rep needs the ncu-report wheel: pip install 'gemmsim[ncu]'; "
            "or give what ncu --import FILE --csv --page raw --print-units base prints"
        ) from None
    try:
        context = ncu_report.load_report(str(path))
    except Exception as error:  # the library's own, of several kinds
        raise GemmsimError(f"{path} is no report that ncu-report can read: {error}") from None
    text = ncu_report.IMetric.ValueKind_STRING
    ranges = [context.range_by_idx(i) for i in range(context.num_ranges())]
    return [_action(one.action_by_idx(i), text) for one in ranges for i in range(one.num_actions())]


def _action(action: Any, text: int) -> Profiled:
    """text: the kind of metrics that are no numbers, which would read as 0."""
    metrics, device = {}, ""
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if name == "device__attribute_display_name":
            device = str(metric.as_string())
        if "__" in name and metric.has_value() and metric.kind() != text:
            metrics[name] = float(metric.as_double()) * unit_factor(str(metric.unit()))
    grid, block = (tuple(int(metrics.get(dim.format(axis), 0)) for axis in "xyz") for dim in _DIMS)
    return Profiled(action.name(), grid if all(grid) else (), block if all(block) else (), device, metrics)


def select(launches: Sequence[Profiled], pattern: str | None, index: int | None) -> Profiled:
    """The one launch that the user means: by a regular expression on the name, and by number among those, from 0.

    Of several launches that fit, without a number the last one counts: the first ones may be warm-ups.
    """
    try:
        fitting = [one for one in launches if pattern is None or re.search(pattern, one.kernel)]
    except re.error as error:
        raise GemmsimError(f"--match '{pattern}' is no regular expression: {error}") from None
    if not fitting:
        names = ", ".join(dict.fromkeys(one.kernel for one in launches))
        raise GemmsimError(f"no launch fits --match '{pattern}': the file has {names[:300]}")
    if index is None:
        kernels = dict.fromkeys(one.kernel for one in fitting)
        if len(kernels) > 1:
            raise GemmsimError(f"{len(kernels)} kernels in the file: choose by --match: {', '.join(kernels)[:300]}")
        return fitting[-1]
    if not -len(fitting) <= index < len(fitting):
        raise GemmsimError(f"--launch {index}: {len(fitting)} launches fit, 0 to {len(fitting) - 1}")
    return fitting[index]


def compared(predicted: Mapping[str, float | None], measured: Mapping[str, float]) -> list[Row]:
    """The metrics that both have, in the table's order. The time in ns is among them."""
    rows = []
    for name in (*METRICS, *sorted(set(predicted) - set(METRICS))):
        ours = predicted.get(name)
        if ours is not None and name in measured:
            rows.append(Row(name, float(ours), measured[name]))
    if not rows:
        raise GemmsimError("the file has none of the metrics that gemmsim predicts: profile with --set full")
    return rows


def table(rows: Sequence[Row]) -> str:
    """Text: metric, predicted, measured, ratio."""
    width = max(len(row.metric) for row in rows)
    lines = [f"{'metric':{width}} {'predicted':>16} {'measured':>16} {'ratio':>8}"]
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
        lines.append(f"{row.metric:{width}} {_shown(row.predicted):>16} {_shown(row.measured):>16} {ratio:>8}")
    return "\n".join(lines)


def record(launch: Profiled, case: Mapping[str, Any], gpu: str, arch: str) -> dict[str, Any]:
    """A record (see record.schema.json) of an imported launch; case: its id, subject and problem.

    The profiler's own time is among the counters; it is under its cache control, so it is no `time` of the record.
    """
    number = int(arch.removeprefix("sm_"))
    found: dict[str, Any] = {
        **case,
        "kind": "measured",
        "gpu": gpu,
        "date": datetime.date.today().isoformat(),
        "machine": {
            "device": launch.device or gpu,
            "compute_capability": [number // 10, number % 10],
            "driver": "unknown",
        },
        "counters": kept(launch.metrics),
        "profile": {"status": "profiled", "tool": "ncu", "why": "imported; clock and cache control unknown"},
    }
    return found


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"
