"""Draws the hierarchical roofline of a launch: three roofs, a ceiling, and where the launch stands below each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gemmsim.analysis.limits.roofline import Level, Roofline
from gemmsim.report.layout.words import launch_name
from gemmsim.report.plots.figure import (
    COLOURS,
    DASHES,
    FONT_SIZE,
    GREY,
    MARKERS,
    heading,
    new_figure,
    plain,
)
from gemmsim.report.report import Report
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOM = 6.0  # factor between the outermost points and the edges
CLOSE = 1.6  # points nearer than this factor share one name


def roofline_figure(report: Report) -> Figure:
    """Draw a launch's roofline. Raises GemmsimError where no operations were counted, or matplotlib is missing."""
    line = report.evidence.roofline
    if not line.flops or line.achieved_flops is None:
        raise GemmsimError("no roofline: the number of operations is not known for this kernel")
    figure = new_figure(7.2, 5.6)
    axes = figure.subplots()
    left, right = _span(line)
    low = min(line.achieved_flops, min(level.peak_bytes_per_s * left for level in line.levels)) / 3
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low / 1e12, line.peak_flops / 1e12 * 3))
    axes.set_xlabel("arithmetic intensity, FLOP/byte", fontsize=FONT_SIZE)
    axes.set_ylabel("TFLOP/s", fontsize=FONT_SIZE)
    plain(axes)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.5)
    for number, level in enumerate(line.levels):
        _level(axes, number, level, line, left)
    _names(axes, line)
    start = min(level.ridge_flops_per_byte for level in line.levels)
    axes.plot([start, right], [line.peak_flops / 1e12] * 2, color=GREY, linewidth=1.6)
    axes.annotate(
        f"{line.precision} peak {line.peak_flops / 1e12:.1f} TFLOP/s", (right, line.peak_flops / 1e12), (-2, 7),
        textcoords="offset points", ha="right", fontsize=FONT_SIZE - 1,
    )  # fmt: skip
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower left", fontsize=FONT_SIZE - 1, frameon=False,
        handlelength=4.5,
        title="roof (line), what it allows (hollow), reached (filled)", title_fontsize=FONT_SIZE - 1, alignment="left",
    )  # fmt: skip
    heading(figure, f"Roofline: {launch_name(report.labels)}", f"{report.evidence.gpu.title}: {_verdict(line)}")
    return figure


def _verdict(line: Roofline) -> str:
    bound = "arithmetic" if line.bound == "compute" else line.bound.upper()
    reached = f"reached {(line.achieved_flops or 0) / 1e12:.3g} TFLOP/s, {line.percent_of_attainable or 0:.0f}%"
    return f"bound by {bound}, {reached} of what that allows (predicted)"


def _span(line: Roofline) -> tuple[float, float]:
    """Return the (smallest, largest) intensity shown: all ridge points and finite intensities lie between them."""
    shown = [level.ridge_flops_per_byte for level in line.levels]
    shown += [level.intensity_flops_per_byte for level in line.levels if math.isfinite(level.intensity_flops_per_byte)]
    return min(shown) / ROOM, max(shown) * ROOM


def _level(axes: Any, number: int, level: Level, line: Roofline, left: float) -> None:
    colour, marker, dashes = COLOURS[number], MARKERS[number], DASHES[number]
    ends = [left, level.ridge_flops_per_byte]
    roof = [level.peak_bytes_per_s * end / 1e12 for end in ends]
    name = f"{level.name.upper()}: {level.peak_bytes_per_s / 1e9:,.0f} GB/s"
    intensity = level.intensity_flops_per_byte
    if not math.isfinite(intensity):
        axes.plot(ends, roof, color=colour, linestyle=dashes, label=f"{name}, nothing moved")
        return
    said = f"{name}, {intensity:.3g} FLOP/byte allow {level.attainable_flops / 1e12:.3g} TFLOP/s"
    axes.plot(ends, roof, color=colour, linestyle=dashes, marker=marker, markevery=[], label=said)
    reached, allowed = (line.achieved_flops or 0) / 1e12, level.attainable_flops / 1e12
    axes.plot([intensity] * 2, [reached, allowed], color=colour, linewidth=0.8, linestyle=dashes)
    axes.plot(intensity, allowed, marker=marker, markersize=7, markerfacecolor="white", color=colour, zorder=3)
    axes.plot(intensity, reached, marker=marker, markersize=7, color=colour, zorder=3)


def _names(axes: Any, line: Roofline) -> None:
    """Write the memory levels' names below their points. Points close to one another share a name: "L2, DRAM"."""
    near: list[list[Level]] = []
    for level in sorted(line.levels, key=lambda level: level.intensity_flops_per_byte):
        if not math.isfinite(level.intensity_flops_per_byte):
            continue
        if near and level.intensity_flops_per_byte < CLOSE * near[-1][-1].intensity_flops_per_byte:
            near[-1].append(level)
        else:
            near.append([level])
    for levels in near:
        middle = math.prod(level.intensity_flops_per_byte for level in levels) ** (1 / len(levels))
        axes.annotate(
            ", ".join(level.name.upper() for level in levels), (middle, (line.achieved_flops or 0) / 1e12), (0, -9),
            textcoords="offset points", ha="center", va="top", fontsize=FONT_SIZE - 1,
        )  # fmt: skip
