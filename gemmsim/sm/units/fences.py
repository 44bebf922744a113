"""Memory fences (MEMBAR): how long a warp waits until others can see what it has written."""

from __future__ import annotations

from math import ceil

from gemmsim.sm.units.events import hold_until
from gemmsim.sm.units.instruction import Fence, Instruction, Reason
from gemmsim.sm.units.machine import Sm, Warp
from gemmsim.sm.units.tma import LOADS_REMEMBERED

_BLOCK, _GPU = int(Fence.BLOCK), int(Fence.GPU)
_MEMBAR = int(Reason["MEMBAR"])


def fence(sm: Sm, warp: Warp, row: Instruction, now: int) -> None:
    """Let the warp's memory fence `row`, which issues in cycle `now`, end when what it waits for is done: set `done` of
    the warp. An execution without an active thread waits for nothing.

    On an H200 (own microbenchmark, tests/records/h200_fences.json) a fence waits for all that its warp has loaded.
    One of the GPU waits for what its SM has stored, too. It takes the same time on each SM where this has asked L2 for
    nothing since the last one; else L2 is asked, which takes 116 to 338 cycles longer, by the SM and the line. Where
    several warps fence at the same time, it takes most of them twice as long: as if one question were under way and
    the next shared by the others. A fence beside bulk copies waits for those that have begun.
    """
    sync = sm.streams[warp.stream].syncs[warp.syncs]
    warp.syncs += 1
    if sync.amount == 0:
        warp.done = now
        return
    begins = max(float(now), float(warp.loads_done))
    arrives = max(float(warp.done), begins)  # behind what is before it in the queues
    if row.fence == _BLOCK:
        warp.sources_read = max(warp.sources_read, ceil(begins + row.fence_cycles))
        warp.done = warp.sources_read
        return
    memory = sm.memory
    if row.fence == _GPU:
        arrives = max(arrives, _loaded_in_bulk(sm, now))
        takes = sm.spec.fence_acknowledged_cycles
        ends = memory.question + takes
        if arrives > memory.question and (arrives < ends or memory.unacknowledged):
            memory.question = max(arrives, ends)
            memory.unacknowledged = 0
        asks = memory.question
        if memory.l2_stores.next_free > now:
            asks = max(asks, memory.l2_stores.next_free)
        arrives = max(arrives, asks + takes)
    warp.done = ceil(arrives + row.fence_cycles)


def _loaded_in_bulk(sm: Sm, now: int) -> float:
    """Return when what the TMA unit loads has come, for those loads under way in cycle `now` that it has begun; that is
    as many as `Spec.fence_bulk_loads`, the first to end.
    """
    ends, last = sm.memory.tile_ends, float(now)
    for _ in range(sm.spec.fence_bulk_loads):
        first = -1
        for i in range(LOADS_REMEMBERED):
            if ends[i] > last and (first < 0 or ends[i] < ends[first]):
                first = i
        if first >= 0:
            last = ends[first]
    return last


def wait_for_fence(sm: Sm, warp: Warp, row: Instruction) -> None:
    """Keep the warp's next instruction from issuing before the fence `row` ends, where no scoreboard does."""
    if row.fence > _BLOCK or row.read_scoreboard < 0:
        hold_until(sm, warp, _MEMBAR, warp.done)
