"""Renders a timeline as one HTML file that fetches nothing: a canvas to zoom into, and its data as JSON."""

from __future__ import annotations

from typing import Any

from gemmsim.report.layout.web_page import web_page
from gemmsim.report.timeline.state_letters import STATES, spoken
from gemmsim.report.timeline.types import TimelineReport, Window, within
from gemmsim.sm.observer import LEVELS
from gemmsim.sm.ring import Ring
from gemmsim.sm.timeline import WarpStay
from gemmsim.sm.types import STALL_REASONS

MOST_INTERVALS = 150_000  # with so many the page stays under 2 MB
_SCRIPTS = ("model.js", "draw.js", "interact.js")


def render(report: TimelineReport, window: Window) -> str:
    return web_page(__package__, _SCRIPTS, {"TITLE": report.title}, _data(report, window))


def _data(report: TimelineReport, window: Window) -> dict[str, Any]:
    shown = window.cycles < report.timeline.cycles
    part = f" Shown: cycles {window.first:,} to {window.stop:,}." if shown else ""
    return {
        "scope": f"{report.scope[0].upper()}{report.scope[1:]}.{part}",
        "first": window.first,
        "stop": window.stop,
        "reasons": [[reason, spoken(reason), *STATES[reason]] for reason in STALL_REASONS],
        "levels": list(LEVELS),
        "code": [[text.sass, text.line, text.source] for text in report.instructions],
        "rings": [_ring(ring, window) for ring in report.timeline.rings],
        "warps": [warp for stay in report.timeline.warps if (warp := _warp(report, stay, window)) is not None],
    }


def _ring(ring: Ring, window: Window) -> list[Any]:
    """Return a ring as [block, stages, fills], the fills in one flat list: stage, cycles of asking, full and free."""
    fills = ring.fills[(ring.fills[:, 3] > window.first) & (ring.fills[:, 1] < window.stop)]
    return [ring.block, ring.stages, fills.reshape(-1).tolist()]


def _warp(report: TimelineReport, stay: WarpStay, window: Window) -> list[Any] | None:
    """Return a warp as [name, sub-partition, first cycle, states, memory]; None where it has no cycle in the window.

    states  (cycles, reason, instruction) of one state after the other, in one flat list
    memory  (begin, cycles, instruction, level) of each memory instruction, in one flat list
    """
    states, memory = within(stay.states, window), within(stay.memory, window)
    if not len(states):
        return None
    first = int(states[0, 0])
    states[:, 0] = states[:, 1] - states[:, 0]
    memory[:, 1] -= memory[:, 0]
    return [
        report.warp_name(stay),
        stay.sub_partition,
        first,
        states[:, [0, 2, 3]].reshape(-1).tolist(),
        memory.reshape(-1).tolist(),
    ]
