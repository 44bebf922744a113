"""Presents a comparison of predictions with records as sections, which every output format renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from gemmsim.support.plurals import plural

from ..documents.sections import Section, Table, table
from ..records.case import STUDY
from ..records.ways import TIMES
from .cause import guess
from .figures import Figures, counter_figures, grouped, orders, time_figures
from .halves import halves, of_half
from .judge import Judged, Number
from .metrics import EXACT, MODELLED, NOISE, NOISY
from .tiles import choices

WORST_CASES_SHOWN = 15
SWAPPED_PAIRS_SHOWN = 4

DEFINITIONS = (
    "A case is one launch of one kernel on one GPU. Measured cases replay the machine code that ran; published ones "
    "replay CUDA C++ of our own with the published tile parameters, compiled for that GPU by the NVRTC installed.",
    f"Exact counters (instructions, requests, sectors, shared load wavefronts, launch figures) must agree within "
    f"{100 * NOISE:.1f} %, the noise of a hardware counter. Shared stores and bank conflicts are counted by rules too, "
    "but the hardware's counters also hold arbitration: they are shown and not gated.",
    "Modelled counters are compared by relative error, hit rates and occupancy by their difference in points.",
    "The error of a time is (predicted - measured) / measured, of the median of at least 20 samples or of what the "
    "source states: of launches with rotated operands where those were timed, else of the published time, else of "
    "launches back to back. Launches back to back, and published ones whose source says that it launched in a row, are "
    "predicted with warm caches: L2 as an identical launch has left it; all others with cold ones. Counters, and times "
    "under the profiler, are always predicted with cold caches, as Nsight Compute flushes them: a case with both is "
    "predicted twice. The mean of absolute errors (MAPE), the 90th percentile, the worst and the mean with signs "
    "(bias) are given, and Kendall's tau of the order of the kernels of one GPU, size and source.",
    "Each number of a GPU file names its source; `calibrated` ones name the records that they were fitted to.",
)


def sections(both: Sequence[Judged]) -> tuple[Section, ...]:
    """Return the sections of the document on all judged cases.

    Cases to judge by appear in the figures of `halves` alone, and where they could not be predicted.
    """
    found = [Section("What is compared", (*DEFINITIONS, _coverage(both)))]
    judged = of_half(both, STUDY)
    if len(judged) < len(both):
        found += halves(both)
        if tiles := choices(both):
            found.append(tiles)
    failed = [row for row in both if row.prediction.error]
    if failed:
        found.append(
            Section("Not predicted", table=table(("case", "why"), [(f.case.id, f.prediction.error) for f in failed]))
        )
    for kind, title in (("measured", "Measured"), ("published", "Published")):
        rows = [row for row in judged if row.case.kind == kind and not row.prediction.error]
        if rows:
            found += _of_kind(title, rows)
    return tuple(found)


def _of_kind(title: str, rows: Sequence[Judged]) -> Iterable[Section]:
    yield Section(f"{title}: time", table=_times(rows))
    yield Section(f"{title}: worst times, and a guess from the counters", table=_worst(rows))
    yield Section(f"{title}: order of the kernels", table=_orders(rows))
    counted = [row for row in rows if row.numbers]
    if counted:
        yield Section(f"{title}: exact counters", table=_exact(counted))
        broken = [(row, n) for row in counted for n in row.numbers if n.kind == "exact" and not n.agrees]
        if broken:
            yield Section(f"{title}: exact counters that differ", table=_broken(broken))
        yield Section(f"{title}: modelled counters", table=_modelled(counted))
    yield Section(f"{title}: every case", table=_cases(rows))


def _coverage(judged: Sequence[Judged]) -> str:
    counted = sum(bool(row.case.counters) for row in judged)
    return f"{plural(len(judged), 'case')} on {gpus_of(judged)}: times of {times_of(judged)}; counters of {counted}."


def gpus_of(judged: Sequence[Judged]) -> str:
    """Return the names of the cases' GPUs as text."""
    return ", ".join(sorted({row.case.gpu for row in judged}))


def times_of(judged: Sequence[Judged]) -> str:
    """Return, as text, the number of cases compared with each way of timing (see TIMES): "12 against rotated"."""
    counts = {way: sum(row.time_way == way for row in judged) for way in TIMES}
    return ", ".join(f"{count} against {way.replace('_', ' ')}" for way, count in counts.items() if count)


def _times(rows: Sequence[Judged]) -> Table:
    lines = [_figure_row("all", "", time_figures(rows))]
    for what, key in (
        ("GPU", lambda r: r.case.gpu),
        ("kernel", lambda r: f"{r.title} {r.case.dtype}"),
        ("size", lambda r: r.case.size),
    ):
        lines += [_figure_row(what, name, time_figures(group)) for name, group in _by_size(grouped(rows, key)).items()]
    columns = ("by", "", "cases", "MAPE %", "p90 %", "worst %", "bias %", "worst case")
    return table(columns, [line for line in lines if line], numeric=range(2, 7))


def _by_size(groups: dict[str, list[Judged]]) -> dict[str, list[Judged]]:
    """Sort the groups by name; groups named by a size, such as "1024" or "1000x500x77", are sorted by its number."""
    return dict(
        sorted(groups.items(), key=lambda item: (int(item[0].split("x")[0]) if item[0][:1].isdigit() else 0, item[0]))
    )


def _figure_row(what: str, name: str, found: Figures | None) -> tuple[str, ...]:
    if found is None:
        return ()
    return (what, name, str(found.cases), *found.texts(), found.worst_case)


def _worst(rows: Sequence[Judged]) -> Table:
    timed = sorted((row for row in rows if row.time), key=lambda row: -abs(row.time.error if row.time else 0))
    return table(
        ("case", "predicted us", "measured us", "error %", "guess"),
        [(row.case.id, *_time_texts(row), guess(row)) for row in timed[:WORST_CASES_SHOWN]],
        numeric=(1, 2, 3),
    )


def _orders(rows: Sequence[Judged]) -> Table:
    lines = []
    for order in sorted(orders(rows), key=lambda order: order.tau):
        swapped = "; ".join(order.swapped[:SWAPPED_PAIRS_SHOWN]) + (
            "; ..." if len(order.swapped) > SWAPPED_PAIRS_SHOWN else ""
        )
        lines.append((order.group, str(order.kernels), f"{order.tau:.2f}", swapped))
    return table(("kernels of", "number", "tau", "in the wrong order"), lines, numeric=(1, 2))


def _exact(rows: Sequence[Judged]) -> Table:
    lines = []
    for name in (*EXACT, *NOISY):
        numbers = [n for row in rows for n in row.numbers if n.name == name]
        if numbers:
            gated = [n for n in numbers if not n.excuse]
            equal = sum(n.agrees for n in gated)
            worst = max((abs(n.error_pct) for n in gated if isfinite(n.error)), default=0.0)
            is_gate = "yes" if name in EXACT else "no"
            explained = len(numbers) - len(gated)
            lines.append((name, is_gate, str(len(gated)), str(equal), f"{worst:.2f}", str(explained)))
    columns = ("counter", "gated", "cases", "equal", "worst %", "explained")
    return table(columns, lines, numeric=range(2, 6))


def _broken(found: Sequence[tuple[Judged, Number]]) -> Table:
    lines = []
    for row, number in found:
        texts = (f"{number.predicted:,.6g}", f"{number.measured:,.6g}", f"{number.error_pct:+.2f}")
        lines.append((row.case.id, number.name, *texts, number.excuse or "not explained"))
    return table(("case", "counter", "predicted", "measured", "error %", "why"), lines, numeric=(2, 3, 4))


def _modelled(rows: Sequence[Judged]) -> Table:
    lines = []
    for metric in MODELLED:
        found = counter_figures(rows, metric.name)
        if found:
            unit = "points" if metric.points else "%"
            goal = f"{metric.goal:g}" if metric.goal is not None else ""
            mean, *others = found.texts()
            lines.append((metric.label, metric.name, unit, str(found.cases), mean, goal, *others, found.worst_case))
    columns = ("what", "counter", "in", "cases", "mean", "goal", "p90", "worst", "bias", "worst case")
    return table(columns, lines, numeric=range(3, 9))


def _cases(rows: Sequence[Judged]) -> Table:
    ordered = sorted(
        rows, key=lambda row: (row.case.gpu, row.title, row.case.dtype, row.case.m * row.case.n * row.case.k)
    )
    lines = [
        (
            row.case.gpu,
            row.title,
            row.case.dtype,
            row.case.size,
            *_time_texts(row),
            row.time_way.replace("_", " "),
            row.case.id,
        )
        for row in ordered
        if row.time
    ]
    columns = ("GPU", "kernel", "type", "size", "predicted us", "measured us", "error %", "measured", "case")
    return table(columns, lines, numeric=(3, 4, 5, 6))


def _time_texts(row: Judged) -> tuple[str, str, str]:
    assert row.time
    return f"{row.time.predicted:,.1f}", f"{row.time.measured:,.1f}", f"{row.time.error_pct:+.1f}"
