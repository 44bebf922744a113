"""Draws a sweep as heat maps of two of its axes, and as curves over problem sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmsim.analysis.studies.ranking import Point, Sweep, SweepResult
from gemmsim.report.plots.tables import Curve, HeatTable, heat_figure, scaling_figure
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CURVES = 8
_PARTS = re.compile(r"(?<=\d)(?=\D)|(?<=\D)(?=\d)")


Reader = Callable[[Point], str]


@dataclass(frozen=True)
class _Measure:
    """The quantity that a picture of a sweep shows: its unit, and how to read its value from a result."""

    unit: str
    value: Callable[[SweepResult], float]


def sweep_heat_figure(sweep: Sweep) -> Figure:
    """Draw the tables of `heat_tables` as heat maps. Raises GemmsimError where `heat_tables` or `heat_figure` does."""
    tables = heat_tables(sweep)
    return heat_figure(f"Sweep: {sweep.results[0].point.kernel}", "predicted", tables)


def sweep_scaling_figure(sweep: Sweep) -> Figure:
    """Draw a curve for each GPU: the fastest combination at each size.

    Raises GemmsimError for a sweep of one size, and for more than `MOST_CURVES` GPUs.
    """
    measure = _measure(sweep)
    curves: dict[str, list[tuple[float, float]]] = {}
    for ranking in sweep.rankings:
        point = ranking.point
        if point.m and point.n and point.k:
            size = float(round((point.m * point.n * point.k) ** (1 / 3), 6))
            curves.setdefault(point.gpu, []).append((size, measure.value(ranking.results[0])))
    if len({size for points in curves.values() for size, _ in points}) < 2:
        raise GemmsimError("a scaling curve needs several sizes: give gemmsim sweep more than one")
    if len(curves) > MOST_CURVES:
        raise GemmsimError(f"{len(curves)} curves cannot be told apart: at most {MOST_CURVES}")
    best = ", fastest tunables at each size" if sweep.axes else ""
    drawn = [Curve(gpu, tuple(sorted(points))) for gpu, points in curves.items()]
    title, unit = f"Scaling: {sweep.results[0].point.kernel}{best}", measure.unit
    return scaling_figure(title, "predicted", unit, drawn, log_values=unit == "us")


def heat_tables(sweep: Sweep) -> tuple[HeatTable, ...]:
    """Make the tables of a sweep, by how many tunables vary in it.

    Two or more tunables: a table for each size and GPU over the two tunables that vary most; each cell has the best
    result over all other tunables.
    One tunable: one table of that tunable over sizes, GPUs and dtypes. None: one table of sizes over GPUs or dtypes.
    Raises GemmsimError where fewer than two things vary, or nothing was predicted.
    """
    measure = _measure(sweep)
    points = [result.point for result in sweep.results]
    varied = [name for name in sweep.axes if len({point.tunables.get(name) for point in points}) > 1]
    varied.sort(key=lambda name: -len({point.tunables.get(name) for point in points}))
    axes = [(name, _tunable(name)) for name in varied]
    if len(varied) > 1:
        others = f", best over {', '.join(varied[2:])}" if varied[2:] else ""
        titles = [f"size {_size(one.point)} on {one.point.gpu}{others}" for one in sweep.rankings]
        found = zip(titles, sweep.rankings, strict=True)
        return tuple(_tabulated(title, axes[0], axes[1], ranking.results, measure) for title, ranking in found)
    where = {"size": _size, "GPU": lambda point: point.gpu, "dtype": lambda point: point.dtype}
    several = [name for name, read in where.items() if len({read(point) for point in points}) > 1]
    if varied and several:
        columns, rows = axes[0], (", ".join(several), lambda point: ", ".join(where[name](point) for name in several))
    elif len(several) > 1:
        columns, rows = ((name, where[name]) for name in several[:2])
    else:
        found_axes = ", ".join([*varied, *several]) or "nothing"
        needs = "a heat map needs two things that vary, tunables, sizes or GPUs"
        raise GemmsimError(f"{needs}: of this sweep, {found_axes}")
    return (_tabulated(f"{rows[0]} by {columns[0]}", columns, rows, sweep.results, measure),)


def _tabulated(
    title: str, columns: tuple[str, Reader], rows: tuple[str, Reader], results: Sequence[SweepResult], measure: _Measure
) -> HeatTable:
    """Make the table that has, for each pair of a column and a row, the best of the results with these labels.

    columns, rows  (name of the axis, how to read a point's label on it)
    """
    (x_name, x_of), (y_name, y_of) = columns, rows
    x_labels = _sorted({x_of(result.point) for result in results})
    y_labels = _sorted({y_of(result.point) for result in results})
    more_is_better = measure.unit == "TFLOP/s"
    better = max if more_is_better else min
    cells: dict[tuple[str, str], float] = {}
    for result in results:
        place = y_of(result.point), x_of(result.point)
        cells[place] = better(cells.get(place, measure.value(result)), measure.value(result))
    values = tuple(tuple(cells.get((y, x)) for x in x_labels) for y in y_labels)
    return HeatTable(title, x_name, y_name, tuple(x_labels), tuple(y_labels), values, measure.unit, more_is_better)


def _measure(sweep: Sweep) -> _Measure:
    """Choose what a picture of a sweep shows: TFLOP/s where every result has them, else microseconds.

    Raises GemmsimError where nothing was predicted.
    """
    if not sweep.results:
        raise GemmsimError("no picture of this sweep: none of its combinations was predicted")
    if all(result.prediction and result.prediction.tflops for result in sweep.results):
        return _Measure("TFLOP/s", lambda result: (result.prediction and result.prediction.tflops) or 0.0)
    return _Measure("us", lambda result: result.prediction.time_us if result.prediction else 0.0)


def _tunable(name: str) -> Reader:
    return lambda point: str(point.tunables.get(name, ""))


def _size(point: Point) -> str:
    return str(point.m) if point.m == point.n == point.k else f"{point.m}x{point.n}x{point.k}"


def _sorted(values: set[str]) -> list[str]:
    """Sort texts alphabetically, except that numbers in them go by value: "256 on h200", "1024 on h200"."""
    return sorted(values, key=lambda text: [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in _PARTS.split(text)])
