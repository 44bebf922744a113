"""Barriers of a block: who has arrived, and who goes on when they open.

How many cycles each step takes comes from the table [barrier] of the GPU file (`gemmsim.gpu.spec.Barrier`).
"""

from __future__ import annotations

from math import ceil

from gemmsim.isa.matrix import WARPGROUP_WARPS
from gemmsim.sm.spec import WARPGROUPS
from gemmsim.sm.units.events import hold_until
from gemmsim.sm.units.instruction import Instruction, Reason
from gemmsim.sm.units.machine import AT_BARRIER, GONE, WAITING, Block, Sm, Warp
from gemmsim.sm.units.memory_path import flush
from gemmsim.sm.units.scoreboards import wait_for_scoreboards
from gemmsim.sm.units.server import book

_BARRIER = int(Reason["BARRIER"])


def arrive(sm: Sm, warp: Warp, row: Instruction, now: int) -> None:
    """Let a warp arrive that issues the barrier instruction `row` in cycle `now`. The SM counts arrivals one by one."""
    number, warps = row.barrier, row.barrier_warps
    if row.syncs:
        sync = sm.streams[warp.stream].syncs[warp.syncs]
        warp.syncs += 1
        number, warps = sync.gate, sync.amount
        if number < 0:  # no thread executed it
            return
    counted = float(now)
    if row.of_warpgroup:
        number += (warp.slot % sm.warps_per_block) // WARPGROUP_WARPS
    else:
        counted = book(sm.arrivals, now, counted, sm.spec.arrival_cycles) + sm.spec.arrival_cycles
    block = sm.blocks[warp.block]
    block.arrived[number] += 1
    warp.behind = row.barrier_waits
    warp.barrier = number
    expected = warps if warps > 0 else block.live
    open_if_complete(sm, block, warp.block, number, expected, counted)


def open_if_complete(sm: Sm, block: Block, slot: int, barrier: int, expected: int, now: float) -> None:
    """Open a barrier of `block`, which is in place `slot`, if `expected` warps have arrived: those that wait go on.

    now  when the last of the warps was counted, or when a warp ended, so that fewer are expected

    That of a warpgroup (WARPGROUP.WAIT) takes no longer than an arrival that nobody waits for, and orders no accesses
    (own microbenchmark, tests/records/h200_dmma.json: 11 to 12 cycles a step of a loop, 25 with BAR, 10 without).
    """
    if block.arrived[barrier] < expected:
        return
    block.arrived[barrier] = 0
    of_cluster = barrier == sm.spec.barriers_per_block - 1  # its other blocks are taken to arrive at the same time
    of_warpgroup = barrier >= sm.spec.barriers_per_block - 1 - WARPGROUPS and not of_cluster
    flushed = of_warpgroup
    release = 1.0 if of_warpgroup else sm.spec.release_cycles
    opens = ceil(now + release + (sm.spec.cluster_cycles if of_cluster else 0.0))
    for w in range(slot * sm.warps_per_block, (slot + 1) * sm.warps_per_block):
        warp = sm.warps[w]
        if warp.state == GONE or warp.behind == 0 or warp.barrier != barrier:
            continue
        if not flushed:
            flush(sm, now)
            flushed = True
        warp.behind = 0
        warp.opens = opens
        if warp.state == AT_BARRIER:
            _go_on(sm, warp)


def _go_on(sm: Sm, warp: Warp) -> None:
    """Let a warp go on: its next instruction had to wait for the barrier that has just opened."""
    hold_until(sm, warp, _BARRIER, warp.opens)
    wait_for_scoreboards(sm, warp, sm.instructions[warp.pc])
    warp.state = WAITING
    part = sm.sub_partitions[warp.slot % sm.spec.sub_partitions]
    if warp.ready < part.wakes:
        part.wakes = warp.ready
        sm.attention = 1


def wait_for_barrier(sm: Sm, warp: Warp) -> None:
    """Keep the warp's next instruction from issuing before `warp.opens`, the cycle in which its last barrier opened."""
    hold_until(sm, warp, _BARRIER, warp.opens)
