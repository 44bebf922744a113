"""Holds scoreboards for operations that are under way, and lets warps wait for them."""

from __future__ import annotations

from gemmsim.sm.units.events import hold_until
from gemmsim.sm.units.instruction import SCOREBOARDS, Instruction
from gemmsim.sm.units.machine import Sm, Warp
from gemmsim.sm.units.server import RESERVE


def hold_scoreboard(sm: Sm, warp: Warp, scoreboard: int, release: int, reason: int) -> None:
    """Hold a scoreboard of the warp until `release`, for the operation that it has just issued.

    Operations may be released in another order than they issued. `reason` is the stall reason of a wait for this one.
    """
    if release > warp.scoreboards[scoreboard]:
        warp.scoreboards[scoreboard] = release
        warp.reasons[scoreboard] = reason
    if sm.counted >> scoreboard & 1:
        first, count = scoreboard * sm.room.entries, warp.outstanding_counts[scoreboard]
        i = first + count
        while i > first and warp.outstanding[i - 1] > release:
            warp.outstanding[i] = warp.outstanding[i - 1]
            i -= 1
        warp.outstanding[i] = release
        warp.outstanding_counts[scoreboard] = count + 1
        if count + RESERVE > sm.room.entries:
            sm.room.short = 1


def wait_for_scoreboards(sm: Sm, warp: Warp, row: Instruction) -> None:
    """Move `ready` of the warp to the cycle at which its scoreboards let `row`, its next instruction, issue."""
    ready, reason = warp.ready, -1
    for s in range(SCOREBOARDS):
        if row.wait_mask >> s & 1 and warp.scoreboards[s] > ready:
            ready, reason = warp.scoreboards[s], warp.reasons[s]
    s = row.drain_scoreboard
    if s >= 0:
        first, count = s * sm.room.entries, warp.outstanding_counts[s]
        last = first + count - row.drain_most - 1
        if count > row.drain_most and warp.outstanding[last] > ready:
            ready, reason = warp.outstanding[last], warp.reasons[s]
        left = 0
        for i in range(first, first + count):
            if warp.outstanding[i] > warp.ready:
                warp.outstanding[first + left] = warp.outstanding[i]
                left += 1
        warp.outstanding_counts[s] = left
    if reason >= 0:
        hold_until(sm, warp, reason, ready)
