"""Phases of mbarriers, the gates of a block: what completes them, and who goes on when they open.

An mbarrier's phase ends with the last arrival that it expects and the last byte of the bulk copies that belong to it.
What belongs to a phase is known from the functional execution, so that only the times are left to find.
"""

from __future__ import annotations

from math import ceil

from gemmsim.sm.units.barriers import wait_for_barrier
from gemmsim.sm.units.events import OPENED, hold_until, tell
from gemmsim.sm.units.execution import Sync
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.machine import AT_GATE, WAITING, Block, Sm, Warp
from gemmsim.sm.units.scoreboards import hold_scoreboard, wait_for_scoreboards


def count_for(sm: Sm, slot: int, sync: Sync, cycle: float) -> None:
    """Count for a gate of the block in place `slot` what is complete in cycle `cycle`; open it if it was the last."""
    if sync.gate < 0 or sync.counts == 0:
        return
    block = sm.blocks[slot]
    block.missing[sync.gate] -= 1
    block.opens[sync.gate] = max(block.opens[sync.gate], ceil(cycle))
    if block.missing[sync.gate] == 0:
        _open(sm, block, slot, sync.gate)


def _open(sm: Sm, block: Block, slot: int, gate: int) -> None:
    """Let the warps go on that wait for a gate, one after another."""
    tell(sm, OPENED, block.opens[gate], block.opens[gate], slot * sm.warps_per_block, 0, gate)
    woken = 0
    for w in range(slot * sm.warps_per_block, (slot + 1) * sm.warps_per_block):
        warp = sm.warps[w]
        if warp.state == AT_GATE and warp.gate == gate:
            _go_on(sm, warp, block.opens[gate] + ceil(woken * sm.spec.next_wake_cycles))
            woken += 1


def _go_on(sm: Sm, warp: Warp, opened: int) -> None:
    """Let a warp go on whose wait ends with what happened in cycle `opened`."""
    waiting = sm.instructions[sm.streams[warp.stream].pcs[warp.position - 1]]
    release = opened + ceil(sm.spec.wake_cycles)
    warp.gate = -1
    if waiting.write_scoreboard >= 0:
        hold_scoreboard(sm, warp, waiting.write_scoreboard, release, waiting.result_reason)
    hold_until(sm, warp, waiting.result_reason, release)
    following = sm.instructions[warp.pc]
    if following.passes_barrier == 0:
        wait_for_barrier(sm, warp)
    wait_for_scoreboards(sm, warp, following)
    warp.state = WAITING
    part = sm.sub_partitions[warp.slot % sm.spec.sub_partitions]
    if warp.ready < part.wakes:
        part.wakes = warp.ready
    sm.attention = 1


def meet_gates(sm: Sm, warp: Warp, row: Instruction, now: int) -> None:
    """Let a warp that issues an operation on mbarriers in cycle `now` arrive there, or wait: then its `gate` is set."""
    syncs, block = sm.streams[warp.stream].syncs, sm.blocks[warp.block]
    for _ in range(syncs[warp.syncs].more + 1):
        sync = syncs[warp.syncs]
        warp.syncs += 1
        if sync.counts:
            cycle = now + (sm.spec.remote_arrival_cycles if sync.remote else sm.spec.phase_arrival_cycles)
            count_for(sm, warp.block, sync, max(cycle, float(warp.copies_done)) if row.after_copies else cycle)
        elif sync.gate >= 0 and block.missing[sync.gate] > 0:
            warp.gate = sync.gate
        elif sync.gate >= 0:
            warp.done = max(warp.done, block.opens[sync.gate] + ceil(sm.spec.wake_cycles))


def release_one(sm: Sm, now: int) -> int:
    """Open the gate for which the warp waits that came first to its wait; return 0 where no warp waits for any.

    It is what another block of the cluster would have completed, which is not simulated.
    """
    first = -1
    for w in range(sm.places):
        warp = sm.warps[w]
        if warp.state == AT_GATE and (first < 0 or warp.ready < sm.warps[first].ready):
            first = w
    if first < 0:
        return 0
    warp = sm.warps[first]
    block = sm.blocks[warp.block]
    block.missing[warp.gate] = 0
    block.opens[warp.gate] = max(block.opens[warp.gate], now + ceil(sm.spec.remote_arrival_cycles))
    sm.released += 1
    _open(sm, block, warp.block, warp.gate)
    return 1
