"""Counts stall cycles, and keeps for an observer what happens: stalls, issues, accesses, begins and ends of warps."""

from __future__ import annotations

from gemmsim.sm.units.execution import AccessCost
from gemmsim.sm.units.instruction import REASONS
from gemmsim.sm.units.machine import Sm, Warp

STARTED, ISSUED, STALLED, ACCESSED, ENDED, FILLED, OPENED = range(7)  # kinds of events
MOST_EVENTS = 4096  # room for the events of one turn: a barrier that opens tells three intervals of each warp at most
# How far a memory instruction went: the furthest place that any of its data came from or went to. Or what works beside
# the warps: a bulk copy of the TMA unit, or the tensor pipe for an asynchronous multiplication (wgmma).
SHARED_MEMORY, L1, L2, DRAM, TMA, TENSOR = range(6)


def tell(sm: Sm, kind: int, begin: int, end: int, warp: int, instruction: int, detail: int) -> None:
    """Keep an event for the observer, if there is one."""
    if sm.watched == 0:
        return
    event = sm.events[sm.event_count]
    event.kind = kind
    event.begin = begin
    event.end = end
    event.warp = warp
    event.instruction = instruction
    event.detail = detail
    sm.event_count += 1


def stall(sm: Sm, warp: Warp, pc: int, reason: int, begin: int, end: int) -> None:
    """Count and tell the observer that the warp waits in [begin, end) to issue instruction `pc`, or, if the reason is
    drain, has issued it as its last.
    """
    sm.stall_cycles[pc * REASONS + reason] += float(end - begin)
    tell(sm, STALLED, begin, end, warp.slot, pc, reason)


def hold_until(sm: Sm, warp: Warp, reason: int, cycle: int) -> None:
    """Keep the warp's next instruction from issuing before `cycle`; what it waits is a stall for `reason`."""
    if cycle > warp.ready:
        stall(sm, warp, warp.pc, reason, warp.ready, cycle)
        warp.ready = cycle


def level_of(cost: AccessCost) -> int:
    """Return the furthest place that data of an access came from, or went to: SHARED_MEMORY, L1, L2 or DRAM."""
    if cost.dram_sectors > 0:
        return DRAM
    if cost.l2_sectors > 0:
        return L2
    return L1 if cost.tag_cycles > 0 else SHARED_MEMORY


def take_snapshot(sm: Sm, now: int) -> None:
    """Keep what has been counted so far as a `Snapshot`: `next_snapshot` instructions have now issued."""
    snapshot = sm.snapshots[sm.snapshots_taken]
    snapshot.cycles = now
    snapshot.data_busy_cycles = sm.memory.data.busy_cycles + sm.memory.operand_cycles
    for pc in range(sm.instruction_count):
        snapshot.executed[pc] = sm.executed[pc]
    for i in range(sm.instruction_count * REASONS):
        snapshot.stall_cycles[i] = sm.stall_cycles[i]
    pipes = sm.spec.pipes
    for p in range(sm.spec.sub_partitions):
        for pipe in range(pipes):
            snapshot.pipes[p * pipes + pipe].issued = sm.sub_partitions[p].pipes.pipes[pipe].issued
    sm.snapshots_taken += 1
    sm.next_snapshot = sm.snapshots[sm.snapshots_taken].at
