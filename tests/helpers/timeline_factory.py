"""A TimelineReport made by hand: two warps of a block of three instructions, 30 cycles, every number easy to check."""

from __future__ import annotations

import numpy as np

from gemmsim.launch.spec import Labels
from gemmsim.report.timeline.types import InstructionText, TimelineReport
from gemmsim.sm.ring import Ring
from gemmsim.sm.timeline import Timeline, WarpStay
from gemmsim.sm.types import STALL_REASONS

CODE = (
    InstructionText("LDG.E R2, [R4]", 3, "a = A[</script>]"),
    InstructionText("FFMA R0, R2, R3, R0", 4, "acc += a * b"),
    InstructionText("EXIT", None, ""),
)
# begin, end, reason, instruction
FIRST = (
    (2, 3, "selected", 0), (3, 20, "long_scoreboard", 1), (20, 21, "selected", 1), (21, 24, "wait", 2),
    (24, 25, "selected", 2), (25, 30, "drain", 2),
)  # fmt: skip
SECOND = (
    (2, 4, "not_selected", 0), (4, 5, "selected", 0), (5, 9, "barrier", 1), (9, 10, "selected", 1), (10, 11, "wait", 2),
    (11, 12, "selected", 2),
)  # fmt: skip


def stay(slot, block, states, memory):
    rows = np.array([(b, e, STALL_REASONS.index(reason), pc) for b, e, reason, pc in states], np.int32)
    flights = np.array(memory, np.int32).reshape(-1, 4)
    return WarpStay(slot, slot % 4, block, int(rows[0, 0]), int(rows[-1, 1]), rows, flights)


def timeline_report(*more: WarpStay, rings: tuple[Ring, ...] = ()) -> TimelineReport:
    warps = (stay(0, 0, FIRST, [(2, 20, 0, 3)]), stay(1, 0, SECOND, [(4, 9, 0, 0)]), *more)
    return TimelineReport(
        labels=Labels("tiled", "", 64, 64, 32, {"tile": 32}),
        gpu_title="NVIDIA A100",
        arch="sm_80",
        clock_hz=1.41e9,
        kernel_cycles=60.0,
        sm_count=108,
        blocks_per_sm=2,
        warps_per_block=2,
        timeline=Timeline(max(one.end for one in warps), warps, 1, 1, 1.0, rings),
        instructions=CODE,
    )
