"""Executes mbarriers as sm_90 and later have them (SYNCS): barriers in shared memory that count arrivals and bytes.

An mbarrier is 64 bits. The code that compilers make for mbarrier.init, for waits and for mbarrier.pending_count tells
its fields: bits 1 to 20 are minus the number of arrivals that a phase expects, bits 43 to 62 minus the number of those
still missing, and bit 63 is the phase's parity. The bits between, which no code reads, hold the bytes that are expected
and have not come: a number with a sign, as they may come before they are expected. A phase is complete when neither
arrivals nor bytes are missing (PTX ISA, "mbarrier").
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.clusters import BARRIERS, PHASES, SHARED, is_elsewhere, of_block
from gemmsim.trace.engine.memory_access import blame
from gemmsim.trace.engine.paths import next_path, set_aside_first
from gemmsim.trace.engine.sync_trace import note_sync
from gemmsim.trace.llvm.primitives import (
    get_i32,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    has,
    inside,
    lane_address,
    moved,
    row_of,
    set_i32,
    set_i64,
    set_u32,
    set_u64,
    splat_row,
)

# mypy: disable-error-code="no-untyped-def"

_EXPECTED_AT, _BYTES_AT, _MISSING_AT, _PARITY_AT = (np.uint64(n) for n in (1, 21, 43, 63))
_COUNT, _BYTES = np.uint64((1 << 20) - 1), np.uint64((1 << 22) - 1)  # masks of the fields
_EXPECTED_BITS, _LOW = np.uint64(((1 << 20) - 1) << 1), np.uint64(0xFFFFFFFF)
_FULL = np.uint32(0xFFFFFFFF)
_IN_BLOCK = np.uint64((1 << words.RANK_SHIFT) - 1)  # the bits of an address that say where it is in a block's memory


@subroutine(NOTHING, ADDRESS)
def note_event(context):
    """Note that something has happened for which a warp of the block may have waited."""
    _note_event(get_u64(context, words.BARRIERS_AT))


@subroutine(NOTHING, ADDRESS)
def _note_event(barriers):
    set_i64(barriers, words.EVENTS, get_i64(barriers, words.EVENTS) + 1)
    set_i64(barriers, words.TIMED_OUT, 0)


@subroutine(INDEX, ADDRESS, ADDRESS)
def phase_of(context, address):
    """Return how many phases of the mbarrier at an address of the cluster's window have ended."""
    offset, phases = address & _IN_BLOCK, get_u64(context, words.PHASES_AT)
    if is_elsewhere(context, address - offset) != 0:
        phases = of_block(context, address - offset, PHASES)
    return np.int64(get_i32(phases, np.int64(offset >> np.uint64(3))))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, ADDRESS)
def note_arrival_at(context, op, address, size, records, tensor_map):
    """Append to the trace that threads arrive at an mbarrier, or bytes. Returns the phase to which they belong."""
    phase = phase_of(context, address)
    note_sync(context, op, np.int64(address >> np.uint64(3)), phase, size, records, tensor_map)
    return phase


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX)
def arrive_at(context, address, arrivals, more_bytes, drops):
    """Let threads arrive at the mbarrier at `address` of shared memory, and change the bytes that it expects.

    address     in the cluster's window; the mbarrier may be another block's, if that block runs
    more_bytes  bytes that are expected in addition; minus the number of bytes that have come
    drops       whether later phases expect as many arrivals less, too
    """
    offset, shared = address & _IN_BLOCK, get_u64(context, words.SHARED_AT)
    phases, barriers = get_u64(context, words.PHASES_AT), get_u64(context, words.BARRIERS_AT)
    if is_elsewhere(context, address - offset) != 0:
        shared, phases = of_block(context, address - offset, SHARED), of_block(context, address - offset, PHASES)
        barriers = of_block(context, address - offset, BARRIERS)
    at = shared + offset
    state = get_u64(at, 0)
    expected, missing = state >> _EXPECTED_AT & _COUNT, (state >> _MISSING_AT) + arrivals & _COUNT
    bytes_left, parity = (state >> _BYTES_AT) + more_bytes & _BYTES, state >> _PARITY_AT
    if drops != 0:
        expected = expected + arrivals & _COUNT
    if missing == np.uint64(0) and bytes_left == np.uint64(0):
        missing, parity = expected, parity ^ np.uint64(1)
        number = np.int64(offset >> np.uint64(3))
        set_i32(phases, number, get_i32(phases, number) + 1)
    counts = expected << _EXPECTED_AT | missing << _MISSING_AT
    set_u64(at, 0, state & np.uint64(1) | counts | bytes_left << _BYTES_AT | parity << _PARITY_AT)
    _note_event(barriers)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, ADDRESS)
def _check(context, registers, op, mask, rows):
    """Tell whether the phase whose parity is the top bit of a word is complete.

    The result, a predicate, is only written where all lanes have it, or where the wait gives up. Otherwise the warp
    waits here: that is the time in which mbarrier.try_wait suspends a thread. Returns WAITS where it is not complete;
    PC then has to go back, except after a wait that has given up.
    """
    parities, done, noted = row_of(registers, op, micro.SECOND_SOURCE), np.uint32(0), np.int64(-1)
    for lane in range(32):
        if has(mask, lane):
            offset = lane_address(rows, lane) & _IN_BLOCK
            state = get_u64(get_u64(context, words.SHARED_AT) + offset, 0)
            if state >> _PARITY_AT != np.uint64(get_u32(parities, lane) >> np.uint32(31)):
                done |= np.uint32(1) << np.uint32(lane)
    if done == mask or gives_up(context, op) != 0:
        result = row_of(registers, op, micro.RESULT)
        splat_row(result, _FULL, done)
        splat_row(result, np.uint32(0), mask & ~done)
    for lane in range(32):
        if done == mask and has(mask, lane):
            number = np.int64(lane_address(rows, lane) >> np.uint64(3))
            if number != noted:
                phase = phase_of(context, lane_address(rows, lane)) - 1
                note_sync(context, op, number, phase, np.int64(0), np.int64(0), np.uint64(0))
            noted = number
    return np.int64(0) if done == mask else np.int64(words.WAITS)


@subroutine(INDEX, ADDRESS, ADDRESS)
def gives_up(context, op):
    """Return whether a check of a phase goes on where the phase is not complete: mbarrier.test_wait always does, and a
    wait for a warpgroup never."""
    kind, timed_out = get_n32(op, micro.DETAIL), get_i64(get_u64(context, words.BARRIERS_AT), words.TIMED_OUT)
    if kind == micro.AWAIT_GROUPS or kind == micro.AWAIT_WARPS:
        return np.int64(0)
    return np.int64(1) if kind == micro.TEST else timed_out


@subroutine(INDEX, ADDRESS, ADDRESS, WORD)
def _check_others(context, rows, mask):
    """Check the addresses of mbarriers of other blocks of the cluster; returns 0 or the status of a fault."""
    limit, status = get_u64(context, words.SHARED_BYTES), np.int64(0)
    for lane in range(32):
        if status == 0 and has(mask, lane):
            base = lane_address(rows, lane) & ~_IN_BLOCK
            one = np.uint32(1) << np.uint32(lane)
            in_cluster = base >> np.uint64(words.RANK_SHIFT) < get_u64(context, words.CLUSTER_BLOCKS)
            allowed = limit if in_cluster else np.uint64(0)
            status = blame(context, rows, one, 8, base, allowed, np.int64(words.SHARED_RANGE))
    return status


@subroutine(INDEX, ADDRESS, ADDRESS)
def comes_late(context, address):
    """Return whether the mbarrier at an address of the cluster's window is that of a block that has ended."""
    base = address & ~_IN_BLOCK
    return np.int64(is_elsewhere(context, base) != 0 and of_block(context, base, SHARED) == np.uint64(0))


def operate(context, registers, op, mask, warp):
    """Execute a micro-operation on mbarriers for the lanes in `mask`, lane after lane.

    An arrival at an mbarrier of a block that has ended does nothing, as nobody can wait there any more; it is noted.

    Returns 0, WAITS, or the status of a fault. The result of an arrival is the mbarrier's state before it.
    """
    rows, kind = row_of(registers, op, micro.SOURCE), get_n32(op, micro.DETAIL)
    base, limit = get_u64(context, words.SHARED_BASE), get_u64(context, words.SHARED_BYTES)
    own = inside(rows, base, _IN_BLOCK + np.uint64(1)) if kind == micro.ARRIVE_AT else _FULL
    status = blame(context, rows, mask & own, 8, base, limit, np.int64(words.SHARED_RANGE))
    if status == 0 and mask & ~own != 0:
        status = _check_others(context, rows, mask & ~own)
    if status != 0:
        return status
    if kind >= micro.TEST:
        return _check(context, registers, op, mask, rows)
    data, more = row_of(registers, op, micro.SECOND_SOURCE), row_of(registers, op, micro.THIRD_SOURCE)
    result, flags = row_of(registers, op, micro.RESULT), get_n32(op, micro.IMMEDIATE)
    last, phase = np.uint64(0), np.int64(-1)
    for lane in range(32):
        if not has(mask, lane):
            continue
        address = lane_address(rows, lane)
        if comes_late(context, address) != 0:
            set_i64(get_u64(context, words.COUNTERS_AT), words.LATE_ARRIVAL, get_n32(op, micro.INSTRUCTION) + 1)
            continue
        at = get_u64(context, words.SHARED_AT) + (address & _IN_BLOCK)
        if is_elsewhere(context, address & ~_IN_BLOCK) != 0:
            at = of_block(context, address & ~_IN_BLOCK, SHARED) + (address & _IN_BLOCK)
        if address != last or phase != phase_of(context, address):  # the arrivals of a warp count once
            last, phase = address, note_arrival_at(context, op, address, np.int64(0), np.int64(0), np.uint64(0))
        if kind == micro.INITIALISE:
            set_u32(at, 0, get_u32(data, lane))
            set_u32(at, 1, get_u32(more, lane))
            set_i32(get_u64(context, words.PHASES_AT), np.int64((address & _IN_BLOCK) >> np.uint64(3)), 0)
            note_event(context)
            continue
        state, more_bytes = get_u64(at, 0), np.uint64(get_u32(more, lane))
        if flags & micro.COMPLETES != 0:
            more_bytes = np.uint64(0) - more_bytes
        arrive_at(context, address, np.uint64(get_u32(data, lane)), more_bytes, flags & micro.DROPS)
        set_u32(result, lane, np.uint32(state & _LOW))
        set_u32(result, 32 + lane, np.uint32(state >> np.uint64(32)))
    return np.int64(0)


def path_runner(run_warp):
    """Make `run_paths`, which lets each path of a warp run that can, of `run_warp`, which runs one until it waits."""

    @subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
    def run_paths(context, warp, registers, number):
        """Run warp `number` until all of its paths wait or have ended, or must stop.

        Returns 0 where they wait or have ended, WAITS where one of them waits at an mbarrier, else the status with
        which the warp stopped.
        """
        barriers = get_u64(context, words.BARRIERS_AT)
        waited = get_i64(barriers, words.ROUND_PATHS)  # before the block stopped here
        set_i64(barriers, words.ROUND_PATHS, 0)
        status = run_warp(context, warp, registers, number)
        while status == words.WAITS:
            op = moved(get_u64(context, words.CODE_AT), 4 * micro.COLUMNS * get_i64(warp, words.PC))
            step = np.int64(1) if gives_up(context, op) != 0 else -get_n32(op, micro.SECOND_IMMEDIATE)
            set_i64(warp, words.PC, get_i64(warp, words.PC) + step)
            set_aside_first(warp)
            waited += 1
            if waited >= get_i64(warp, words.PATH_COUNT):
                return status
            next_path(warp, registers)
            status = run_warp(context, warp, registers, number)
        if status == words.GIVES_WAY or status == words.SPINS:
            return status
        if status != 0:
            set_i64(barriers, words.ROUND_PATHS, waited)
        elif get_i64(warp, words.STATE) != words.READY:
            note_event(context)  # it has come to another barrier, or ended
        elif waited != 0:
            status = np.int64(words.WAITS)
        return status

    return run_paths
