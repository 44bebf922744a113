"""Blocks on the SM: how one begins in a free place, and how its warps leave."""

from __future__ import annotations

from math import ceil

from gemmsim.sm.units.barriers import open_if_complete
from gemmsim.sm.units.data_stage import settle
from gemmsim.sm.units.events import ENDED, STARTED, hold_until, tell
from gemmsim.sm.units.instruction import ALL_SCOREBOARDS, Reason
from gemmsim.sm.units.instruction_cache import fetch_line
from gemmsim.sm.units.machine import GONE, NEVER, WAITING, Sm, Warp

_NO_INSTRUCTION = int(Reason["NO_INSTRUCTION"])
_EVER = 1e18  # a cycle after all others


def start_block(sm: Sm, slot: int, now: int) -> None:
    """Begin the next block of the grid in place `slot`, which is free from cycle `now` on."""
    number = sm.begun
    dispatched = max(now, ceil(sm.next_block))
    sm.next_block = max(float(now), sm.next_block) + sm.spec.block_interval_cycles
    block = sm.blocks[slot]
    block.live = 0
    block.end = 0
    block.leaves = NEVER
    block.order = number if sm.spec.oldest_block_first else 0
    for barrier in range(sm.spec.barriers_per_block):
        block.arrived[barrier] = 0
    for fetch in range(sm.fetches):
        block.arriving[fetch] = 0
    for tensor_map in range(sm.maps):
        block.maps[tensor_map] = 0
    first = sm.gates[2 * number]
    for gate in range(sm.gates[2 * number + 1]):
        block.missing[gate] = sm.needed[first + gate]
        block.opens[gate] = 0
    for w in range(sm.warps_per_block):
        stream = sm.grid[number * sm.warps_per_block + w]
        if sm.streams[stream].length > 0:
            block.live += 1
            _start_warp(sm, slot, slot * sm.warps_per_block + w, stream, dispatched)
    sm.begun += 1


def _start_warp(sm: Sm, block: int, slot: int, stream: int, dispatched: int) -> None:
    sm.launched += 1
    warp = sm.warps[slot]
    warp.slot = slot
    warp.block = block
    warp.state = WAITING
    warp.stream = stream
    warp.position = 0
    warp.accesses = 0
    warp.syncs = 0
    warp.gate = -1
    warp.pc = sm.streams[stream].pcs[0]
    warp.rank = -sm.launched
    warp.issued = -1
    warp.loaded = dispatched
    warp.worked = 0
    warp.returned = 0.0
    warp.ready = dispatched + sm.spec.block_start_cycles
    warp.stores_done = 0
    warp.loads_done = 0
    warp.copies_done = 0
    warp.bulk_read = 0
    warp.barrier = -1
    warp.behind = 0
    warp.opens = 0
    warp.moved = 0
    for s in range(ALL_SCOREBOARDS):
        warp.scoreboards[s] = 0
        warp.outstanding_counts[s] = 0
    tell(sm, STARTED, warp.ready, warp.ready, slot, warp.pc, sm.begun)
    fetch_for(sm, warp, warp.pc // sm.spec.line_instructions, warp.ready)
    part = sm.sub_partitions[slot % sm.spec.sub_partitions]
    part.wakes = min(part.wakes, warp.ready)


def fetch_for(sm: Sm, warp: Warp, line: int, now: int) -> None:
    """Fetch `line`, the line of code with the warp's next instruction, and let the warp wait until it is there."""
    warp.line = line
    hold_until(sm, warp, _NO_INSTRUCTION, ceil(fetch_line(sm.spec, sm.cache, line, now)))


def end_warp(sm: Sm, warp: Warp, now: int, end: int) -> None:
    """End a warp that issued its last instruction in cycle `now`; its place is free at `end`.

    Barriers for the whole block no longer wait for it.
    """
    block = sm.blocks[warp.block]
    warp.state = GONE
    block.end = max(block.end, end)
    block.live -= 1
    tell(sm, ENDED, end, end, warp.slot, warp.pc, 0)
    for w in range(warp.block * sm.warps_per_block, (warp.block + 1) * sm.warps_per_block):
        other = sm.warps[w]
        if other.state != GONE and other.behind:
            open_if_complete(sm, block, warp.block, other.barrier, block.live, float(now))
    if block.live == 0:
        sm.block_ends[sm.ended] = block.end
        sm.ended_slots[sm.ended] = warp.block
        block.leaves = block.end
        block.left = sm.ended
        sm.ended += 1
        sm.attention = 1
        if sm.ended == sm.grid_blocks:
            settle(sm, _EVER, now)  # what no warp has waited for is counted, too
