"""Draws a `Comparison` as bars: how fast each launch is, how much faster than the launch before, what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmsim.analysis.studies.comparison import Comparison, Group, Row
from gemmsim.report.layout.words import duration
from gemmsim.report.plots.figure import COLOURS, FONT_SIZE, GREY, heading, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR_INCHES, GROUP_INCHES = 0.3, 0.85
BARS_SHARE = 0.42  # of the width, for the longest bar; the rest is for the texts at its right


def ladder_figure(comparison: Comparison) -> Figure:
    """Draw a part for each `Group`, with a bar for each launch. Raises GemmsimError where matplotlib is missing."""
    groups = comparison.groups
    rows = [len(group.rows) for group in groups]
    figure = new_figure(9.0, 0.7 + GROUP_INCHES * len(groups) + BAR_INCHES * sum(rows))
    parts = figure.subplots(len(groups), 1, squeeze=False, gridspec_kw={"height_ratios": [n + 1 for n in rows]})
    for axes, group in zip(parts[:, 0], groups, strict=True):
        _group(axes, group, comparison.by_gpu)
    heading(
        figure,
        f"{'GPUs' if comparison.by_gpu else 'Ladder'} at {comparison.size}",
        "predicted; longer is faster; beside: share of peak, time, times the one before, limit",
    )
    return figure


def _group(axes: Any, group: Group, by_gpu: bool) -> None:
    counted = all(row.launch.achieved_flops for row in group.rows)
    values = [_value(row, counted) for row in group.rows]
    places = range(len(values))
    axes.barh(places, values, height=0.62, color=COLOURS[0], edgecolor="black", linewidth=0.6)
    axes.set_yticks(places, [row.launch.gpu if by_gpu else row.launch.name for row in group.rows])
    axes.set_ylim(len(values) - 0.4, -0.6)  # the first row is at the top
    longest = max(values)
    axes.set_xlim(0, longest / BARS_SHARE)
    axes.set_title(group.title, fontsize=FONT_SIZE, loc="left")
    axes.set_xlabel("TFLOP/s" if counted else "launches a second", fontsize=FONT_SIZE - 1, loc="left")
    plain(axes)
    ticks = [tick for tick in axes.get_xticks() if tick <= longest * 1.001]
    axes.set_xticks(ticks)
    axes.spines["bottom"].set_bounds(0, longest)
    for place, (row, value) in enumerate(zip(group.rows, values, strict=True)):
        axes.annotate(
            _bar_text(row), (value, place), (4, 0), textcoords="offset points", va="center", fontsize=FONT_SIZE - 1.5
        )
    peaks = {row.launch.peak_flops for row in group.rows}
    if counted and len(peaks) == 1 and (peak := peaks.pop() / 1e12) <= longest * 1.05:
        axes.axvline(peak, color=GREY, linestyle="--", linewidth=1)


def _value(row: Row, counted: bool) -> float:
    return (row.launch.achieved_flops or 0.0) / 1e12 if counted else 1e6 / row.launch.time_us


def _bar_text(row: Row) -> str:
    launch = row.launch
    said = [duration(launch.time_us)]
    if launch.achieved_flops and launch.percent_of_peak:
        said = [f"{launch.achieved_flops / 1e12:.2f} TFLOP/s ({launch.percent_of_peak:.1f}%)", *said]
    if row.speed_up is not None:
        said.append(f"{row.speed_up:.2f}x")
    return ", ".join([*said, launch.limited_by])
