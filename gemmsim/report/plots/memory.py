"""Draws the memory chart of a launch: what moved between kernel, L1, shared memory, L2 and DRAM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmsim.analysis.hardware.memory_flow import DRAM, KERNEL, L1, L2, SHARED, Flow, MemoryFlow, memory_flow
from gemmsim.report.layout.words import launch_name, number
from gemmsim.report.plots.figure import COLOURS, FONT_SIZE, GREY, amount, heading, new_figure
from gemmsim.report.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Box -> (left, bottom, width, height), in a drawing of 100 x 60.
_BOXES = {
    KERNEL: (0.0, 4.0, 11.0, 52.0),
    L1: (36.0, 27.0, 12.0, 29.0),
    SHARED: (36.0, 4.0, 12.0, 15.0),
    L2: (63.0, 4.0, 11.0, 52.0),
    DRAM: (89.0, 27.0, 11.0, 29.0),
}
# (source, target, what) -> height of the arrow
_HEIGHTS = {
    (L1, KERNEL, "global"): 51.0, (KERNEL, L1, "global"): 44.0,
    (L1, KERNEL, "local"): 37.0, (KERNEL, L1, "local"): 30.0,
    (SHARED, KERNEL, "shared"): 15.0, (KERNEL, SHARED, "shared"): 8.0,
    (L2, L1, ""): 47.0, (L1, L2, ""): 36.0, (DRAM, L2, ""): 47.0, (L2, DRAM, ""): 36.0,
    (L2, SHARED, "TMA"): 15.0, (SHARED, L2, "TMA"): 8.0,
}  # fmt: skip
_WIDEST, _THINNEST = 6.0, 0.8  # arrows, in points


def memory_figure(report: Report) -> Figure:
    """Draw a chart with arrows as wide as the bytes they carry. Raises GemmsimError where matplotlib is missing."""
    from_to = memory_flow(report.evidence)
    figure = new_figure(10.0, 5.2)
    axes = figure.subplots()
    axes.set(xlim=(-1, 101), ylim=(0, 60))
    axes.set_axis_off()
    for name, text in _texts(report, from_to).items():
        _box(axes, name, text)
    most = max((flow.moved_bytes for flow in from_to.flows), default=0.0)
    for flow in from_to.flows:
        _arrow(axes, flow, most)
    heading(
        figure,
        f"Memory chart: {launch_name(report.labels)}",
        f"{report.evidence.gpu.title}; whole launch, predicted; arrows as wide as the bytes they carry",
    )
    return figure


def _texts(report: Report, from_to: MemoryFlow) -> dict[str, str]:
    evidence = report.evidence
    conflicts = number(from_to.conflicts)
    return {
        KERNEL: "kernel",
        L1: f"L1\n\n{_hits(from_to.l1_hit_pct)}",
        SHARED: f"shared\nmemory\n\n{conflicts}\nbank conflicts",
        L2: f"L2\n{evidence.gpu.l2.size_bytes / 2**20:g} MiB\n\n{_hits(from_to.l2_hit_pct)}",
        DRAM: f"DRAM\n{evidence.gpu.dram.peak_bytes_per_s / 1e9:,.0f} GB/s",
    }


def _hits(hit_pct: float | None) -> str:
    return "not asked" if hit_pct is None else f"{hit_pct:.1f}% hits"


def _box(axes: Any, name: str, text: str) -> None:
    from matplotlib.patches import Rectangle

    left, bottom, width, height = _BOXES[name]
    axes.add_patch(Rectangle((left, bottom), width, height, facecolor="#F2F2F2", edgecolor="black", linewidth=1.2))
    axes.text(left + width / 2, bottom + height / 2, text, ha="center", va="center", fontsize=FONT_SIZE)


def _arrow(axes: Any, flow: Flow, most: float) -> None:
    """Draw an arrow from box to box at the flow's height, with its text above. `most`: bytes of the largest flow."""
    if (flow.source, flow.target) == (L1, SHARED):
        return _copy(axes, flow)
    rightwards = _BOXES[flow.target][0] > _BOXES[flow.source][0]
    first, second = (flow.source, flow.target) if rightwards else (flow.target, flow.source)
    begin, end = _BOXES[first][0] + _BOXES[first][2] + 0.4, _BOXES[second][0] - 0.4
    y = _HEIGHTS[flow.source, flow.target, flow.what]
    width = max(_THINNEST, _WIDEST * flow.moved_bytes / most) if most else _THINNEST
    reads = not rightwards
    axes.annotate(
        "", (end if rightwards else begin, y), (begin if rightwards else end, y),
        arrowprops={
            "arrowstyle": f"-|>,head_width={0.25 + width / 14},head_length={0.45 + width / 14}", "shrinkA": 0,
            "shrinkB": 0, "linewidth": width, "color": COLOURS[0] if reads else COLOURS[1],
            "mutation_scale": 10, "capstyle": "butt", "joinstyle": "miter",
        },
    )  # fmt: skip
    above = 1.0 + width / 9
    axes.text(
        (begin + end) / 2, y + above, _label(flow), ha="center", va="bottom", fontsize=FONT_SIZE - 1.5, color=GREY
    )


def _copy(axes: Any, flow: Flow) -> None:
    """Draw the arrow of cp.async, down from L1 to shared memory, with its text beside it."""
    x, below, above = 38.0, _BOXES[SHARED][1] + _BOXES[SHARED][3] + 0.4, _BOXES[L1][1] - 0.4
    axes.annotate("", (x, below), (x, above), arrowprops={"arrowstyle": "-|>", "linewidth": 2.0, "color": COLOURS[0]})
    text = f"{flow.what}: {amount(flow.moved_bytes)}\n{_short(flow.requests)} requests"
    axes.text(x + 1.2, (below + above) / 2, text, ha="left", va="center", fontsize=FONT_SIZE - 1.5, color=GREY)


def _label(flow: Flow) -> str:
    verb = {KERNEL: "loads", L1: "reads", L2: "reads"} if flow.source != KERNEL else {L1: "stores", SHARED: "stores"}
    moved = amount(flow.moved_bytes)
    if KERNEL in (flow.source, flow.target):
        wavefronts = f", {_short(flow.wavefronts)} wavefronts" if flow.wavefronts else ""
        return f"{flow.what} {verb[flow.target]}: {moved}\n{_short(flow.requests)} requests{wavefronts}"
    if flow.what == "TMA":
        multicast = flow.received_bytes > 1.001 * flow.moved_bytes
        more = f"{amount(flow.received_bytes)} arrive" if multicast else f"{_short(flow.requests)} requests"
        return f"TMA {'loads' if flow.target == SHARED else 'stores'}: {moved}\n{more}"
    downwards = (flow.source, flow.target) in ((L1, L2), (L2, DRAM))
    return f"{'writes' if downwards else 'reads'}\n{moved}"


def _short(count: float) -> str:
    """Write a count with few digits: 1.31 M, or 32,768."""
    for power, unit in ((12, "T"), (9, "G"), (6, "M")):
        if count >= 10**power:
            return f"{count / 10**power:.3g} {unit}"
    return f"{count:,.0f}"
