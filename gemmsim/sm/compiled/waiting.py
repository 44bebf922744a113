"""What a warp waits for before it may issue: scoreboards, and barriers that open.

Comments that say why are in the SimPy model, which each docstring names.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import DOUBLE, INDEX, NOTHING, subroutine
from gemmsim.sm.code import SCOREBOARDS, Reason
from gemmsim.sm.compiled.layout import ARRIVALS
from gemmsim.sm.compiled.memory import add_real, integer, put_integer
from gemmsim.sm.compiled.records import BLOCK_TYPE, ROW_TYPE, SM_TYPE, WARP_TYPE, block_at, part_at, row_at, warp_at
from gemmsim.sm.compiled.units import book, flush, up

# mypy: disable-error-code="no-untyped-def, arg-type, assignment"

GONE, WAITING, ELIGIBLE, AT_BARRIER = range(4)  # states of a warp
_BARRIER = int(Reason["BARRIER"])


@subroutine(NOTHING, SM_TYPE, WARP_TYPE, ROW_TYPE)
def hold_for_scoreboards(sm, warp, row):
    """`SubPartition.hold_for_scoreboards`; `row` is the warp's next instruction."""
    ready, reason = warp.ready, np.int64(-1)
    for s in range(SCOREBOARDS):
        if row.waits >> s & 1 and integer(warp.scoreboards_at, s) > ready:
            ready, reason = integer(warp.scoreboards_at, s), integer(warp.reasons_at, s)
    s = row.drain_scoreboard
    if s >= 0:
        count, first = integer(warp.outstanding_count_at, s), s * sm.room
        last = first + count - row.drain_most - 1
        if count > row.drain_most and integer(warp.outstanding_at, last) > ready:
            ready, reason = integer(warp.outstanding_at, last), integer(warp.reasons_at, s)
        kept = 0
        for i in range(first, first + count):
            if integer(warp.outstanding_at, i) > ready:
                put_integer(warp.outstanding_at, first + kept, integer(warp.outstanding_at, i))
                kept += 1
        put_integer(warp.outstanding_count_at, s, kept)
    if reason >= 0:
        add_real(row.stalls_at, reason, float(ready - warp.ready))
        warp.ready = ready


@subroutine(NOTHING, WARP_TYPE, ROW_TYPE)
def wait_for_barrier(warp, row):
    """`SubPartition._wait_for_barrier`; `row` is the warp's next instruction."""
    if warp.opens > warp.ready:
        add_real(row.stalls_at, _BARRIER, float(warp.opens - warp.ready))
        warp.ready = warp.opens


@subroutine(NOTHING, SM_TYPE, BLOCK_TYPE, INDEX, INDEX, INDEX, DOUBLE)
def complete(sm, block, slot, barrier, expected, now):
    """`Block._complete` and, where that releases warps, `SubPartition.open_barrier`."""
    if integer(block.arrived_at, barrier) < expected:
        return
    put_integer(block.arrived_at, barrier, 0)
    flushed = 0
    opens = up(now + sm.release_cycles)
    for w in range(slot * sm.warps_per_block, (slot + 1) * sm.warps_per_block):
        warp = warp_at(sm.warps_at, w)
        if warp.state == GONE or warp.behind == 0 or warp.barrier != barrier:
            continue
        if flushed == 0:
            flush(sm, now)
            flushed = 1
        warp.behind = 0
        warp.opens = opens
        if warp.state != AT_BARRIER:
            continue
        row, part = row_at(sm.table_at, warp.pc), part_at(sm.parts_at, w % sm.parts)
        wait_for_barrier(warp, row)
        hold_for_scoreboards(sm, warp, row)
        warp.state = WAITING
        part.wakes = min(part.wakes, warp.ready)


@subroutine(NOTHING, SM_TYPE, WARP_TYPE, ROW_TYPE, INDEX)
def arrive(sm, warp, row, now):
    """`Core.arrive`."""
    counted = book(sm, ARRIVALS, now, float(now), sm.arrival_cycles) + sm.arrival_cycles
    block = block_at(sm.blocks_at, warp.block)
    put_integer(block.arrived_at, row.barrier, integer(block.arrived_at, row.barrier) + 1)
    warp.behind = row.blocks
    warp.barrier = row.barrier
    complete(sm, block, warp.block, row.barrier, row.expected if row.expected > 0 else block.live, counted)
