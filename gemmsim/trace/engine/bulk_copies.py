"""Executes bulk copies: those of a run of bytes (UBLKCP, UBLKRED), and TMA's of a tile (UTMALDG, UTMASTG, UTMAREDG).

A copy is complete at once. A load then tells its mbarrier how many bytes have come: all of the tile, even where it
reaches beyond the array and holds zeros (PTX ISA, cp.async.bulk.tensor). A copy leaves records of the sectors that it
reads or writes in global memory, each lane for a sector.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine import plan_words
from gemmsim.trace.engine.clusters import SHARED, is_elsewhere, of_block
from gemmsim.trace.engine.combine import combined
from gemmsim.trace.engine.copy_plans import PIECE, allocation_of, content_of, prepare, refused
from gemmsim.trace.engine.mbarrier import arrive_at, note_arrival_at
from gemmsim.trace.engine.memory_access import record
from gemmsim.trace.engine.sync_trace import note_sync
from gemmsim.trace.launch_data.device_memory import PIECE_SHIFT
from gemmsim.trace.llvm.primitives import (
    first_set,
    get_i64,
    get_n32,
    get_u8,
    get_u16,
    get_u32,
    get_u64,
    moved,
    row_of,
    scratch,
    set_i64,
    set_u8,
    set_u16,
    set_u32,
    set_u64,
)

# mypy: disable-error-code="no-untyped-def"

_CHUNK = np.uint64(7)
_LINE = 128
_LANES, _SECTOR = 32, 32  # lanes of a record, of which each stands for a sector of so many bytes


@subroutine(ADDRESS, ADDRESS, INDEX)
def _swizzled(address, swizzle):
    """Return where in shared memory a byte of a tile goes: 16-byte pieces of a line change places, by the line."""
    if swizzle == 0:
        return address
    mask = np.uint64((1 << swizzle) - 1)
    return address ^ ((address >> np.uint64(7) & mask) << np.uint64(4))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _find(context, plan, address, first, last):
    """Note in the plan which allocation holds bytes `first` to `last` from an address on; returns 0 or a status."""
    if last <= first:
        return np.int64(0)
    begin = moved(address, first)
    known, size = get_i64(plan, plan_words.ALLOCATION), last - first
    if known >= 0:
        offset = begin - get_u64(get_u64(context, words.ALLOCATION_START), known)
        length = get_u64(get_u64(context, words.ALLOCATION_SIZE), known)
        if offset < length and moved(offset, size) <= length:
            return np.int64(0)
    found = allocation_of(context, begin, size)
    set_i64(plan, plan_words.ALLOCATION, found)
    if found < 0:
        return refused(context, np.int64(micro.BEYOND), begin)
    return np.int64(0)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _load_row(context, plan, to, address, first, last):
    """Copy a row of the tile, of which bytes `first` to `last` are in the array, to `to` in shared memory."""
    shared, swizzle = get_u64(plan, plan_words.TARGET), get_i64(plan, plan_words.SWIZZLE)
    source = np.uint64(0)
    if last > first:
        source = content_of(context, get_i64(plan, plan_words.ALLOCATION), address)
    for piece in range(0, get_i64(plan, plan_words.BOX) * get_i64(plan, plan_words.ITEM), PIECE):
        at = shared + _swizzled(moved(to, piece), swizzle)
        if piece >= first and piece + PIECE <= last and source & _CHUNK == np.uint64(0):
            set_u64(at, 0, get_u64(moved(source, piece), 0))
            set_u64(at, 1, get_u64(moved(source, piece), 1))
            continue
        for byte in range(piece, piece + PIECE):
            inside = byte >= first and byte < last
            set_u8(at, byte - piece, get_u8(source, byte) if inside else np.uint8(0))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _kept(context, plan, address, first, last):
    """Return whether a conversion to tf32 with zeros for subnormals keeps bytes `first` to `last` of a row as they are.

    No source says how TMA rounds, so that only such values are loaded by a map that converts.
    """
    source, kept = content_of(context, get_i64(plan, plan_words.ALLOCATION), address), np.int64(1)
    for at in range(first, last, 4):
        bits = np.int64(get_u32(moved(source, at), 0)) & 0x7FFFFFFF
        if bits & 0x1FFF != 0 or (bits != 0 and bits < 0x00800000) or bits > 0x7F800000:
            kept = np.int64(0)
    return kept


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _store_row(context, plan, source, address, first, last):
    """Store bytes `first` to `last` of a row of the tile, or combine them with what is there."""
    shared, item, detail = (
        get_u64(context, words.SHARED_AT),
        get_i64(plan, plan_words.ITEM),
        get_i64(plan, plan_words.COMBINE),
    )
    allocation, swizzle = get_i64(plan, plan_words.ALLOCATION), get_i64(plan, plan_words.SWIZZLE)
    to = content_of(context, allocation, address)
    for at in range(first, last, item):
        value_at, old_at = shared + _swizzled(moved(source, at), swizzle), moved(to, at)
        if detail & micro.COMBINES != 0:
            _combine(detail, item, old_at, value_at)
        else:
            for byte in range(item):
                set_u8(old_at, byte, get_u8(value_at, byte))
    start = get_u64(get_u64(context, words.ALLOCATION_START), allocation)
    position = get_u64(get_u64(context, words.ALLOCATION_POSITION), allocation) + (address - start)
    for byte in range(first, last):
        set_u8(get_u64(context, words.WRITTEN_AT), np.int64(moved(position, byte)), 1)
        set_u8(get_u64(context, words.TOUCHED_AT), np.int64(moved(position, byte) >> np.uint64(PIECE_SHIFT)), 1)


@subroutine(NOTHING, INDEX, INDEX, ADDRESS, ADDRESS)
def _combine(detail, item, old_at, value_at):
    detail = detail & ~np.int64(micro.COMBINES)
    if item == 8:
        value = get_u64(value_at, 0)
        set_u64(old_at, 0, combined(detail, item, get_u64(old_at, 0), value, value))
    elif item == 4:
        value = np.uint64(get_u32(value_at, 0))
        set_u32(old_at, 0, np.uint32(combined(detail, item, np.uint64(get_u32(old_at, 0)), value, value)))
    else:
        value = np.uint64(get_u16(value_at, 0))
        new = combined(detail, np.int64(4), np.uint64(get_u16(old_at, 0)), value, value)
        set_u16(old_at, 0, np.uint32(new & np.uint64(0xFFFF)))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _flush(context, op, lanes, count):
    """Record the `count` sectors whose addresses are in the first of the `lanes`; returns 0, how many are left."""
    if count > 0:
        counters = get_u64(context, words.COUNTERS_AT)
        warp = get_i64(counters, words.SYNC_WARP) - get_i64(counters, words.WARP_BASE)
        record(context, lanes, np.uint32((np.int64(1) << count) - 1), op, warp)
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, ADDRESS, INDEX)
def _note_row(context, op, lanes, count, begin, size):
    """Put the sectors of a row in global memory behind the `count` sectors in the lanes; returns how many are there.

    A row that does not fit into what is left of the lanes begins another record.
    """
    first = begin & ~np.uint64(_SECTOR - 1)
    sectors = (np.int64(moved(begin, size) - first) + _SECTOR - 1) // _SECTOR
    if count + sectors > _LANES:
        count = _flush(context, op, lanes, count)
    for sector in range(sectors):
        if count == _LANES:
            count = _flush(context, op, lanes, count)
        address = moved(first, _SECTOR * sector)
        set_u32(lanes, count, np.uint32(address & np.uint64(0xFFFFFFFF)))
        set_u32(lanes, _LANES + count, np.uint32(address >> np.uint64(32)))
        count += 1
    return count


@subroutine(INDEX, ADDRESS, INDEX)
def requests_of(begin, size):
    """Return with how many requests to L2 `size` bytes of a row are copied from an address on: one for the sectors of
    each line that are wholly among them, and one for each sector of which half is.

    On an H200 rows of 128 bytes that begin 0, 16, 32, 48 bytes behind a line's begin take a TMA unit 1.2, 3, 2 and 4
    cycles, all SMs together 3.5, 4.9, 3.5 and 6.4, rows of 32 bytes 1 and 2 (tests/records/h200_tma_rows.json).
    """
    end = np.int64(begin & np.uint64(_LINE - 1)) + size
    first = np.int64(begin & np.uint64(_LINE - 1))
    whole, stop = (first + _SECTOR - 1) // _SECTOR * _SECTOR, end // _SECTOR * _SECTOR
    if whole > stop:  # within a sector
        return np.int64(1)
    requests = np.int64(0)
    if whole > first:
        requests += 1
    if end > stop:
        requests += 1
    if stop > whole:
        requests += (stop - 1) // _LINE - whole // _LINE + 1
    return requests


@subroutine(INDEX, ADDRESS, INDEX)
def _most_records(plan, rows):
    """Return how many records a copy leaves at most."""
    sectors = get_i64(plan, plan_words.BOX) * get_i64(plan, plan_words.ITEM) // _SECTOR + 2
    return rows * (sectors // _LANES + 2) + 2 if sectors > _LANES else rows // (_LANES // sectors) + 2


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, TRUTH, TRUTH, TRUTH)
def _copy(context, op, plan, rows, loads, moves, records):
    """Copy all rows of a tile, if it `moves`, and record their sectors, if `records`. Returns 0 or a status."""
    rank, item, place = get_i64(plan, plan_words.RANK), get_i64(plan, plan_words.ITEM), get_i64(plan, plan_words.PLACE)
    row_bytes, lanes, count = get_i64(plan, plan_words.BOX) * item, scratch(_LANES), np.int64(0)
    requests = np.int64(0)
    low = max(np.int64(0), -place)
    high = min(get_i64(plan, plan_words.BOX), get_i64(plan, plan_words.SIZE) - place)
    for row in range(rows):
        rest, address, inside = np.int64(row), moved(get_u64(plan, plan_words.BASE), place * item), high > low
        for d in range(1, rank):
            box = get_i64(plan, plan_words.BOX + d)
            at = get_i64(plan, plan_words.PLACE + d) + rest % box * get_i64(plan, plan_words.STEP + d)
            rest //= box
            inside = inside and at >= 0 and at < get_i64(plan, plan_words.SIZE + d)
            address = moved(address, at * get_i64(plan, plan_words.STRIDE + d))
        first, last = (low * item, high * item) if inside else (np.int64(0), np.int64(0))
        status = _find(context, plan, address, first, last)
        if status != 0:
            return status
        if inside and records:
            count = _note_row(context, op, lanes, count, moved(address, first), last - first)
            requests += requests_of(moved(address, first), last - first)
        if not moves:
            continue
        in_shared = moved(get_u64(plan, plan_words.SHARED), row * row_bytes)
        if loads:
            if inside and get_u64(
                get_u64(context, words.ALLOCATION_STALE), get_i64(plan, plan_words.ALLOCATION)
            ) != np.uint64(0):
                return np.int64(words.STALE)
            if inside and get_i64(plan, plan_words.CONVERTS) != 0 and _kept(context, plan, address, first, last) == 0:
                return refused(context, np.int64(micro.CONVERTED), moved(address, first))
            _load_row(context, plan, in_shared, address, first, last)
        elif inside:
            _store_row(context, plan, in_shared, address, first, last)
    set_i64(get_u64(context, words.COUNTERS_AT), words.REQUESTS, requests)
    return _flush(context, op, lanes, count)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
def targets_of(context, registers, op, lane):
    """Return for which ranks of the cluster a load is, a bit for each."""
    if get_n32(op, micro.DETAIL) & micro.MULTICASTS == 0:
        return np.int64(1) << (get_i64(context, words.SHARED_BASE) >> words.RANK_SHIFT)
    mask = np.int64(get_n32(row_of(registers, op, micro.THIRD_SOURCE), lane)) >> 16  # the register's upper half
    return mask & np.int64(0xFFFF)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _load(context, registers, op, plan, rows, lane):
    """Load a tile or a run of bytes to each block that gets it. Returns 0 or a status."""
    moves, before = get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT == 0, np.int64(0)
    whole, barrier = get_i64(plan, plan_words.BYTES), get_u64(plan, plan_words.BARRIER)
    targets = targets_of(context, registers, op, lane)
    for rank in range(get_i64(context, words.CLUSTER_BLOCKS)):
        if targets >> rank & 1 == 0:
            continue
        base = np.uint64(rank) << np.uint64(words.RANK_SHIFT)
        place = get_u64(context, words.SHARED_AT)
        if is_elsewhere(context, base) != 0:
            place = of_block(context, base, SHARED)
        if place == np.uint64(0):
            return np.int64(words.ENDED_BLOCK)
        set_u64(plan, plan_words.TARGET, place)
        counters = get_u64(context, words.COUNTERS_AT)
        made = get_i64(counters, words.RECORDS)
        status = _copy(context, op, plan, rows, True, moves, before == 0)
        if status != 0:
            return status
        before, made = np.int64(1), get_i64(counters, words.RECORDS) - made
        note_arrival_at(context, op, barrier + base, whole, made, get_u64(plan, plan_words.MAP))
        arrive_at(context, barrier + base, np.uint64(0), np.uint64(0) - np.uint64(whole), 0)
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _store(context, op, plan, rows):
    """Store a tile or a run of bytes, or combine it with what is there. Returns 0 or a status."""
    allocation = allocation_of(context, get_u64(plan, plan_words.BASE), np.int64(1))
    if allocation < 0:
        return refused(context, np.int64(micro.BEYOND), get_u64(plan, plan_words.BASE))
    if get_i64(plan, plan_words.CONVERTS) != 0:
        return refused(context, np.int64(micro.CONVERTED), get_u64(plan, plan_words.BASE))
    moves = get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT == 0
    if not moves:
        set_u64(get_u64(context, words.ALLOCATION_STALE), allocation, np.uint64(1))
    elif get_u64(get_u64(context, words.ALLOCATION_LENT), allocation) != np.uint64(0):
        set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, allocation)
        return np.int64(words.LENT)
    before = get_i64(get_u64(context, words.COUNTERS_AT), words.RECORDS)
    status = _copy(context, op, plan, rows, False, moves, True)
    if status == 0:
        made = get_i64(get_u64(context, words.COUNTERS_AT), words.RECORDS) - before
        whole = get_i64(plan, plan_words.BYTES)
        note_sync(context, op, np.int64(words.NO_BARRIER), np.int64(0), whole, made, get_u64(plan, plan_words.MAP))
    return status


def copy_in_bulk(context, registers, op, mask, warp):
    """Execute a bulk copy, once for the threads in `mask`. Returns 0 or a status."""
    plan, lane = scratch(plan_words.PLAN_WORDS), first_set(mask)
    status = prepare(context, registers, op, lane, plan)
    if status != 0:
        return status
    row_bytes = get_i64(plan, plan_words.BOX) * get_i64(plan, plan_words.ITEM)
    rows = get_i64(plan, plan_words.BYTES) // max(np.int64(1), row_bytes)
    counters, records = get_u64(context, words.COUNTERS_AT), _most_records(plan, rows)
    if get_i64(counters, words.ROOM) < records:
        set_i64(counters, words.ROOM, records)
        return np.int64(words.GROW)
    if get_n32(op, micro.DETAIL) & micro.DIRECTION_MASK == micro.COPY_LOAD:
        return _load(context, registers, op, plan, rows, lane)
    return _store(context, op, plan, rows)
