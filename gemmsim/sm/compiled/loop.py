"""The loop: what the SimPy processes do, cycle by cycle of those in which something happens.

Comments that say why are in the SimPy model, which each docstring names.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import INDEX, NOTHING, TRUTH, subroutine
from gemmsim.sm.code import SCOREBOARDS, Kind, Reason
from gemmsim.sm.compiled.layout import BARRIERS, NEVER
from gemmsim.sm.compiled.memory import add_real, integer, put_integer, put_real, real, short
from gemmsim.sm.compiled.records import (
    PART_TYPE,
    SM_TYPE,
    WARP_TYPE,
    block_at,
    cost_at,
    mark_at,
    part_at,
    row_at,
    server_at,
    sm_at,
    stream_at,
    warp_at,
)
from gemmsim.sm.compiled.units import fetch, hold_queue, read_registers, request, take_pipe
from gemmsim.sm.compiled.waiting import (
    AT_BARRIER,
    ELIGIBLE,
    GONE,
    WAITING,
    arrive,
    complete,
    hold_for_scoreboards,
    wait_for_barrier,
)
from gemmsim.sm.compiled.write_ports import expect, write
from gemmsim.sm.sub_partition import SOURCES_READ_CYCLES
from gemmsim.sm.types import STALL_REASONS

# mypy: disable-error-code="no-untyped-def, arg-type, assignment"

_NEVER = int(NEVER)
_NOBODY = 1  # ranks are below 0
_MEMORY, _BARRIER_KIND, _COPY_FENCE = int(Kind.MEMORY), int(Kind.BARRIER), int(Kind.COPY_FENCE)
_WAIT, _NOT_SELECTED = int(Reason["WAIT"]), int(Reason["NOT_SELECTED"])
_BRANCH_RESOLVE, _DRAIN = int(Reason["BRANCH_RESOLVE"]), int(Reason["DRAIN"])
_DISPATCH_STALL = int(Reason["DISPATCH_STALL"])
_REASONS = len(STALL_REASONS)


@subroutine(NOTHING, SM_TYPE, INDEX, INDEX, INDEX)
def _start(sm, slot, number, now):
    """`Core._schedule_blocks`: block `number` begins in place `slot`."""
    block = block_at(sm.blocks_at, slot)
    block.live = 0
    block.end = 0
    block.order = number if sm.oldest_block_first else 0
    for barrier in range(BARRIERS):
        put_integer(block.arrived_at, barrier, 0)
    for access in range(sm.fetches):
        put_integer(block.arriving_at, access, 0)
    for w in range(sm.warps_per_block):
        stream = stream_at(sm.streams_at, integer(sm.grid_at, number * sm.warps_per_block + w))
        if stream.length == 0:
            continue
        block.live += 1
        sm.launched += 1
        position = slot * sm.warps_per_block + w
        warp, part = warp_at(sm.warps_at, position), part_at(sm.parts_at, position % sm.parts)
        warp.state = WAITING
        warp.position = 0
        warp.length = stream.length
        warp.pcs_at = stream.pcs_at
        warp.cost_at = stream.costs_at
        warp.pc = short(stream.pcs_at, 0)
        warp.rank = -sm.launched
        warp.issued = -1
        warp.ready = now + sm.block_start_cycles
        warp.stores_done = 0
        warp.copies_done = 0
        warp.block = slot
        warp.barrier = -1
        warp.behind = 0
        warp.opens = 0
        for s in range(SCOREBOARDS):
            put_integer(warp.scoreboards_at, s, 0)
            put_integer(warp.outstanding_count_at, s, 0)
        fetch(sm, warp, row_at(sm.table_at, warp.pc), warp.pc // sm.line_instructions, warp.ready)
        part.wakes = min(part.wakes, warp.ready)


@subroutine(NOTHING, SM_TYPE, WARP_TYPE, INDEX, INDEX, INDEX)
def _hold(sm, warp, scoreboard, release, reason):
    """`sub_partition._hold`; outstanding operations are kept in the order of their releases."""
    if release > integer(warp.scoreboards_at, scoreboard):
        put_integer(warp.scoreboards_at, scoreboard, release)
        put_integer(warp.reasons_at, scoreboard, reason)
    if sm.counted >> scoreboard & 1:
        count = integer(warp.outstanding_count_at, scoreboard)
        if count == sm.room:
            sm.full = 1
            return
        i = scoreboard * sm.room + count
        while i > scoreboard * sm.room and integer(warp.outstanding_at, i - 1) > release:
            put_integer(warp.outstanding_at, i, integer(warp.outstanding_at, i - 1))
            i -= 1
        put_integer(warp.outstanding_at, i, release)
        put_integer(warp.outstanding_count_at, scoreboard, count + 1)


@subroutine(NOTHING, SM_TYPE, WARP_TYPE, INDEX, INDEX)
def _end(sm, warp, now, end):
    """`Core.warp_ended`."""
    block = block_at(sm.blocks_at, warp.block)
    warp.state = GONE
    block.end = max(block.end, end)
    block.live -= 1
    for w in range(warp.block * sm.warps_per_block, (warp.block + 1) * sm.warps_per_block):
        other = warp_at(sm.warps_at, w)
        if other.state != GONE and other.behind:
            complete(sm, block, warp.block, other.barrier, block.live, float(now))
    if block.live == 0:
        put_integer(sm.block_ends_at, sm.ended, block.end)
        block.leaves = block.end
        block.leaves_order = sm.ended
        sm.ended += 1


@subroutine(NOTHING, SM_TYPE, INDEX)
def _snapshot(sm, now):
    """`Core.mark`."""
    mark = mark_at(sm.marks_at, sm.marks_taken)
    mark.cycles = now
    mark.data = server_at(sm.servers_at, sm.data_server).busy
    for pc in range(sm.instructions):
        row = row_at(sm.table_at, pc)
        put_integer(mark.executed_at, pc, row.executed)
        for reason in range(_REASONS):
            put_real(mark.stalls_at, pc * _REASONS + reason, real(row.stalls_at, reason))
    for p in range(sm.parts):
        part = part_at(sm.parts_at, p)
        for pipe in range(sm.pipes):
            put_real(mark.pipes_at, p * sm.pipes + pipe, real(part.pipe_issued_at, pipe))
    sm.marks_taken += 1
    sm.next_mark = mark_at(sm.marks_at, sm.marks_taken).at


@subroutine(NOTHING, SM_TYPE, PART_TYPE, WARP_TYPE, INDEX)
def _issue(sm, part, warp, now):
    """`SubPartition._issue`."""
    pc = warp.pc
    row, block = row_at(sm.table_at, pc), block_at(sm.blocks_at, warp.block)
    row.executed += 1
    sm.issued += 1
    if sm.issued == sm.next_mark:
        _snapshot(sm, now)
    late = now - warp.ready
    if late > 0:
        blocked = integer(part.port_blocked_at, row.port) - warp.blocked_before
        stalled = min(part.blocked_cycles - warp.dispatch_before, late - blocked)
        add_real(row.stalls_at, row.throttle_reason, float(blocked))
        add_real(row.stalls_at, _DISPATCH_STALL, float(stalled))
        add_real(row.stalls_at, _NOT_SELECTED, float(late - blocked - stalled))
    if row.rotates or sm.oldest_block_first == 0:
        warp.issued = now

    if row.kind == _MEMORY:
        request(sm, part, warp, block, row, cost_at(warp.cost_at, 0), now)
        warp.cost_at += sm.cost_bytes
        hold_queue(sm, part, warp.release, now)
        expect(sm, part, row, warp.done)
        if row.copy:
            warp.copies_done = max(warp.copies_done, warp.done)
        elif not row.load:
            warp.stores_done = max(warp.stores_done, warp.done)
    else:
        take_pipe(sm, part, row, now)
        if row.reads:
            read_registers(part, row, warp.rank, now)
        warp.read_done = now + SOURCES_READ_CYCLES
        warp.done = now + row.latency
        if row.kind == _COPY_FENCE:
            warp.done = max(warp.done, warp.copies_done)
    held = write(sm, part, row, now)
    if held > 0:
        part.blocked_cycles += held
        part.next_free = max(part.next_free, now + 1) + held
    if row.write >= 0:
        _hold(sm, warp, row.write, warp.done, row.result_reason)
    if row.read >= 0:
        _hold(sm, warp, row.read, warp.read_done, row.result_reason)

    warp.position += 1
    if warp.position == warp.length:
        end = max(now + 1, warp.stores_done)
        add_real(row.stalls_at, _DRAIN, float(end - (now + 1)))
        _end(sm, warp, now, end)
        return
    warp.pc = short(warp.pcs_at, warp.position)
    following = row_at(sm.table_at, warp.pc)
    if warp.pc == pc + 1:
        warp.ready = now + row.delay
    else:
        warp.ready = now + row.taken_delay
        add_real(following.stalls_at, _BRANCH_RESOLVE, float(row.taken_delay - row.delay))
    if row.delay > 1:
        add_real(following.stalls_at, _WAIT, float(row.delay - 1))
    warp.state = WAITING
    if row.kind == _BARRIER_KIND:
        arrive(sm, warp, row, now)
    if following.passes_barrier == 0:
        if warp.behind:
            warp.state = AT_BARRIER
            return
        wait_for_barrier(warp, following)
    if following.holds:
        hold_for_scoreboards(sm, warp, following)
    line = warp.pc // sm.line_instructions
    if line != warp.line:
        fetch(sm, warp, following, line, now)


@subroutine(TRUTH, SM_TYPE, WARP_TYPE, WARP_TYPE, INDEX)
def _before(sm, warp, other, greedy):
    """Which of two warps that can issue `SubPartition._select` takes; `greedy` issued in the last cycle."""
    if warp.rank == greedy or other.rank == greedy:
        return warp.rank == greedy
    order, others = block_at(sm.blocks_at, warp.block).order, block_at(sm.blocks_at, other.block).order
    if order != others:
        return order < others
    return warp.issued < other.issued or (warp.issued == other.issued and warp.rank < other.rank)


@subroutine(NOTHING, SM_TYPE, PART_TYPE, INDEX, INDEX)
def _turn(sm, part, p, now):
    """`SubPartition._run`: one sub-partition looks what can issue."""
    chosen = np.int64(-1)
    greedy = part.last_rank if now == max(part.last_issue + 1, part.next_free) else _NOBODY
    for w in range(p, sm.places, sm.parts):
        warp = warp_at(sm.warps_at, w)
        if warp.state == WAITING and warp.ready <= now:
            warp.state = ELIGIBLE
            warp.port = row_at(sm.table_at, warp.pc).port
            ahead = max(0, integer(part.port_free_at, warp.port) - warp.ready)
            warp.blocked_before = integer(part.port_blocked_at, warp.port) - ahead
            warp.dispatch_before = part.blocked_cycles - max(0, part.next_free - warp.ready)
        if warp.state != ELIGIBLE or part.next_free > now or integer(part.port_free_at, warp.port) > now:
            continue
        if chosen < 0 or _before(sm, warp, warp_at(sm.warps_at, chosen), greedy):
            chosen = w
    if chosen >= 0:
        warp = warp_at(sm.warps_at, chosen)
        part.last_rank = warp.rank
        part.last_issue = now
        _issue(sm, part, warp, now)
    wakes = np.int64(_NEVER)
    for w in range(p, sm.places, sm.parts):
        warp = warp_at(sm.warps_at, w)
        if warp.state == WAITING:
            wakes = min(wakes, warp.ready)
        elif warp.state == ELIGIBLE:
            wakes = min(wakes, integer(part.port_free_at, warp.port))
    part.wakes = max(wakes, max(part.next_free, now + 1))


@subroutine(INDEX, SM_TYPE, INDEX)
def _leaving(sm, now):
    """The place of the block that leaves at `now`, of several the one that ended first; -1 where none does."""
    first = np.int64(-1)
    for slot in range(sm.resident):
        block = block_at(sm.blocks_at, slot)
        if block.leaves != now:
            continue
        if first < 0 or block.leaves_order < block_at(sm.blocks_at, first).leaves_order:
            first = slot
    return first


def run(address):
    """Simulate all blocks of the SM at `address`; `full` is set there where a list had no room."""
    sm = sm_at(address, 0)
    begun = min(sm.resident, sm.grid_blocks)
    for slot in range(begun):
        _start(sm, slot, slot, 0)
    while sm.full == 0:
        now = np.int64(_NEVER)
        for p in range(sm.parts):
            now = min(now, part_at(sm.parts_at, p).wakes)
        for slot in range(sm.resident):
            now = min(now, block_at(sm.blocks_at, slot).leaves)
        if now == _NEVER:
            break
        slot = _leaving(sm, now)
        while slot >= 0:
            block_at(sm.blocks_at, slot).leaves = _NEVER
            if begun < sm.grid_blocks:
                _start(sm, slot, begun, now)
                begun += 1
            slot = _leaving(sm, now)
        for p in range(sm.parts):
            part = part_at(sm.parts_at, p)
            if part.wakes == now:
                _turn(sm, part, p, now)
