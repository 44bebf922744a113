"""Writes a timeline as a trace that ui.perfetto.dev opens: Chrome's JSON trace events, a microsecond a cycle.

The format is "Trace Event Format" (Google, 2016), of which Perfetto reads these parts: M names processes and threads, X
is a slice with a duration (slices of a thread nest), b and e are the ends of an asynchronous slice (these may overlap),
and C is a counter. The format's times are microseconds. A cycle, which is less than a nanosecond, is shown as one
microsecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from gemmsim.report.timeline.state_letters import spoken
from gemmsim.report.timeline.types import InstructionText, TimelineReport, Window, within
from gemmsim.sm.observer import LEVELS
from gemmsim.sm.timeline import WarpStay
from gemmsim.sm.types import STALL_REASONS

MOST_INTERVALS = 250_000  # these make a file of about 50 MB
SM, MEMORY, RINGS = 1, 2, 3  # numbers of the trace's "processes", the first two with a thread of the same number
FIRST_SLOT = 100  # thread of warp slot 0: Perfetto wants thread numbers that differ over all processes
FIRST_STAGE = 10_000  # thread of the first stage of the first ring
_SELECTED = STALL_REASONS.index("selected")

Event = dict[str, Any]


def render(report: TimelineReport, window: Window) -> str:
    """Render the timeline as the JSON of a trace, with an event on each line."""
    head = {
        "displayTimeUnit": "ns",
        "otherData": {"title": report.title, "scope": report.scope, "clock": "1 us stands for 1 SM cycle"},
    }
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in _events(report, window))
    return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{lines}\n]}}\n'


def _events(report: TimelineReport, window: Window) -> Iterator[Event]:
    yield _name("process_name", SM, "warps of one SM (1 us = 1 cycle)")
    yield _name("process_name", MEMORY, "memory instructions under way (1 us = 1 cycle)")
    slots = {stay.slot: stay.sub_partition for stay in report.timeline.warps}
    for slot, part in sorted(slots.items()):
        thread = FIRST_SLOT + slot
        yield _name("thread_name", SM, f"warp slot {slot:02} (sub-partition {part})", thread)
        yield {"ph": "M", "pid": SM, "tid": thread, "name": "thread_sort_index", "args": {"sort_index": slot}}
    number = 0
    for stay in report.timeline.warps:
        begin, end = max(stay.start, window.first), min(stay.end, window.stop)
        if begin >= end:
            continue
        yield _slice(stay, report.warp_name(stay), begin, end, {"block": stay.block})
        for first, stop, reason, instruction in within(stay.states, window).tolist():
            text = report.instructions[instruction]
            name = opcode(text.sass) if reason == _SELECTED else spoken(STALL_REASONS[reason])
            yield _slice(stay, name, first, stop, _said(text))
        for first, stop, instruction, level in within(stay.memory, window).tolist():
            number += 1
            text = report.instructions[instruction]
            common = {"pid": MEMORY, "tid": MEMORY, "cat": LEVELS[level], "id": number, "name": LEVELS[level]}
            yield common | {"ph": "b", "ts": first, "args": {"warp": report.warp_name(stay), **_said(text)}}
            yield common | {"ph": "e", "ts": stop}
    yield from _counters(report, window)
    yield from _rings(report, window)


def opcode(sass: str) -> str:
    """Return the opcode of an instruction, with its modifiers and without its guard: "BRA" of "@!P1 BRA 0x10"."""
    words = sass.split()
    return words[1] if words[0].startswith("@") and len(words) > 1 else words[0]


def _rings(report: TimelineReport, window: Window) -> Iterator[Event]:
    """Yield a thread for each stage of each ring, with a slice while it is filled and one while it is full."""
    if report.timeline.rings:
        yield _name("process_name", RINGS, "rings of stages in shared memory (1 us = 1 cycle)")
    thread = FIRST_STAGE
    for ring in report.timeline.rings:
        for stage in range(ring.stages):
            yield _name("thread_name", RINGS, f"b{ring.block} stage {stage}", thread + stage)
        for stage, asked, full, free in ring.fills.tolist():
            for name, first, stop in (("filling", asked, full), ("full", full, free)):
                begin, end = max(first, window.first), min(stop, window.stop)
                if begin < end:
                    yield {
                        "ph": "X",
                        "pid": RINGS,
                        "tid": thread + stage,
                        "ts": begin,
                        "dur": end - begin,
                        "name": name,
                    }
        thread += ring.stages


def _name(kind: str, pid: int, name: str, tid: int | None = None) -> Event:
    return {"ph": "M", "pid": pid, "tid": pid if tid is None else tid, "name": kind, "args": {"name": name}}


def _slice(stay: WarpStay, name: str, begin: int, end: int, args: dict[str, Any]) -> Event:
    event = {"ph": "X", "pid": SM, "tid": FIRST_SLOT + stay.slot, "ts": begin, "dur": end - begin}
    return event | {"name": name, "args": args}


def _said(text: InstructionText) -> dict[str, Any]:
    said: dict[str, Any] = {"sass": text.sass}
    if text.line is not None:
        said |= {"line": text.line, "source": text.source}
    return said


def _counters(report: TimelineReport, window: Window) -> Iterator[Event]:
    """Yield events that count the memory instructions of each level under way, at each cycle where a count changes."""
    flights = np.concatenate([within(stay.memory, window) for stay in report.timeline.warps])
    for level, name in enumerate(LEVELS):
        mine = flights[flights[:, 3] == level]
        if not len(mine):
            continue
        times = np.concatenate([mine[:, 0], mine[:, 1]])
        steps = np.concatenate([np.ones(len(mine), np.int64), -np.ones(len(mine), np.int64)])
        at, places = np.unique(times, return_inverse=True)
        change = np.bincount(places, weights=steps)
        for time, under_way in zip(at.tolist(), np.cumsum(change).tolist(), strict=True):
            event = {"ph": "C", "pid": MEMORY, "tid": MEMORY, "ts": time, "name": f"{name}: under way"}
            yield event | {"args": {"count": int(under_way)}}
