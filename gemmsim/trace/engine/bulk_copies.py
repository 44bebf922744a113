"""Executes bulk copies: those of a run of bytes (UBLKCP, UBLKRED), and TMA's of a tile (UTMALDG, UTMASTG, UTMAREDG).

A copy is complete at once. A load then tells its mbarrier how many bytes have come: all of the tile, even where it
reaches beyond the array and holds zeros (PTX ISA, cp.async.bulk.tensor). What a tensor map holds where is told in
`gemmsim.launch.tensor_maps`; a kernel may make one itself.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.combine import combined
from gemmsim.trace.engine.mbarrier import arrive_at
from gemmsim.trace.launch_data.device_memory import PIECE_SHIFT
from gemmsim.trace.llvm.primitives import (
    first_set,
    get_i32,
    get_i64,
    get_n32,
    get_u8,
    get_u16,
    get_u32,
    get_u64,
    lane_address,
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

# Words of a plan, which says what a copy does. Of each dimension, innermost first, follow size, stride in bytes,
# elements of the tile, step from one of these to the next, and coordinate.
_BASE, _RANK, _ITEM, _SWIZZLE, SHARED, _COMBINE, _ALLOCATION = range(7)
_SIZE, _STRIDE, _BOX, _STEP, _PLACE = 8, 13, 18, 23, 28
BYTES, BARRIER, PLAN_WORDS = 33, 34, 35
# Of each type of a tensor map: bytes, 0 where TMA converts it; and type in an atomic
_ITEM_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 0, 8, 2)
_INTEGERS = (micro.UNSIGNED, micro.UNSIGNED, micro.UNSIGNED, micro.SIGNED, micro.UNSIGNED, micro.SIGNED)
_TYPES = (*_INTEGERS, micro.HALF, micro.FLOAT, micro.FLOAT, micro.FLOAT, micro.BRAIN)
_PIECE = 16  # bytes that a swizzle keeps together
_CHUNK = np.uint64(7)


@subroutine(INDEX, ADDRESS, INDEX, ADDRESS)
def _refused(context, reason, address):
    """Note why a copy cannot be executed; returns the status that says so."""
    set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, reason)
    set_u64(get_u64(context, words.COUNTERS_AT), words.FAULT_ADDRESS, address)
    return np.int64(words.BAD_COPY)


@subroutine(INDEX, ADDRESS, ADDRESS, INDEX)
def _allocation(context, address, size):
    """Return the number of the allocation that holds `size` bytes from an address on, -1 where none does."""
    for i in range(get_i64(context, words.ALLOCATIONS)):
        offset = address - get_u64(get_u64(context, words.ALLOCATION_START), i)
        length = get_u64(get_u64(context, words.ALLOCATION_SIZE), i)
        if offset < length and moved(offset, size) <= length:
            return np.int64(i)
    return np.int64(-1)


@subroutine(ADDRESS, ADDRESS, INDEX, ADDRESS)
def _content(context, allocation, address):
    """Return where in this process the content of a simulated address is."""
    offset = address - get_u64(get_u64(context, words.ALLOCATION_START), allocation)
    return get_u64(get_u64(context, words.ALLOCATION_PLACE), allocation) + offset


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS)
def _read_map(context, address, plan):
    """Fill a plan with what the tensor map at an address says. Returns 0 or a status."""
    allocation = _allocation(context, address, np.int64(128))
    if allocation < 0:
        return _refused(context, np.int64(micro.NO_MAP), address)
    if get_u64(get_u64(context, words.ALLOCATION_STALE), allocation) != np.uint64(0):
        return np.int64(words.STALE)
    at = _content(context, allocation, address)
    flags = get_n32(at, 2)
    rank, type_ = ((flags >> 4) & 7) + 1, (flags >> 7) & 15
    if rank != get_i64(plan, _RANK):
        return _refused(context, np.int64(micro.OTHER_RANK), address)
    if flags & 0x1800 != 0:
        return _refused(context, np.int64(micro.INTERLEAVED), address)
    if flags & 0x8000 != 0:
        return _refused(context, np.int64(micro.FILLED), address)
    item = np.int64(0)
    if type_ <= 10 and flags & 0x10000 == 0:
        item = _item_bytes(type_)
    if item == 0:
        return _refused(context, np.int64(micro.CONVERTED), address)
    set_i64(plan, _ITEM, item)
    set_u64(plan, _BASE, get_u64(at, 0))
    set_i64(plan, _SWIZZLE, (flags >> 13) & 3)
    set_i64(plan, _COMBINE, get_i64(plan, _COMBINE) | _type_detail(type_))
    for d in range(rank):
        set_i64(plan, _SIZE + d, get_n32(at, 8 + d) + 1)
        set_i64(plan, _STRIDE + d, item)
        step = np.int64(1)
        if d > 0:
            high = (get_n32(at, 7) >> (4 * (d - 1))) & 15
            set_i64(plan, _STRIDE + d, (get_n32(at, 2 + d) | high << 32) << 4)
            step = ((get_n32(at, 13) >> (3 * d)) & 7) + 1
        set_i64(plan, _STEP + d, step)
        set_i64(plan, _BOX + d, (np.int64(get_u8(at, 0x37 + d)) + step) // step)
    return np.int64(0)


@subroutine(INDEX, INDEX)
def _item_bytes(type_):
    found = np.int64(0)
    for number, size in enumerate(_ITEM_BYTES):
        if type_ == number:
            found = np.int64(size)
    return found


@subroutine(INDEX, INDEX)
def _type_detail(type_):
    """Return the type's part of the DETAIL of an atomic (`micro.TYPE_SHIFT`)."""
    found = np.int64(0)
    for number, kind in enumerate(_TYPES):
        if type_ == number:
            found = np.int64(kind)
    return found << micro.TYPE_SHIFT


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
    known, size = get_i64(plan, _ALLOCATION), last - first
    if known >= 0:
        offset = begin - get_u64(get_u64(context, words.ALLOCATION_START), known)
        length = get_u64(get_u64(context, words.ALLOCATION_SIZE), known)
        if offset < length and moved(offset, size) <= length:
            return np.int64(0)
    found = _allocation(context, begin, size)
    set_i64(plan, _ALLOCATION, found)
    if found < 0:
        return _refused(context, np.int64(micro.BEYOND), begin)
    return np.int64(0)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _load_row(context, plan, to, address, first, last):
    """Copy a row of the tile, of which bytes `first` to `last` are in the array, to `to` in shared memory."""
    shared, swizzle = get_u64(context, words.SHARED_AT), get_i64(plan, _SWIZZLE)
    source = np.uint64(0)
    if last > first:
        source = _content(context, get_i64(plan, _ALLOCATION), address)
    for piece in range(0, get_i64(plan, _BOX) * get_i64(plan, _ITEM), _PIECE):
        at = shared + _swizzled(moved(to, piece), swizzle)
        if piece >= first and piece + _PIECE <= last and source & _CHUNK == np.uint64(0):
            set_u64(at, 0, get_u64(moved(source, piece), 0))
            set_u64(at, 1, get_u64(moved(source, piece), 1))
            continue
        for byte in range(piece, piece + _PIECE):
            inside = byte >= first and byte < last
            set_u8(at, byte - piece, get_u8(source, byte) if inside else np.uint8(0))


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _store_row(context, plan, source, address, first, last):
    """Store bytes `first` to `last` of a row of the tile, or combine them with what is there."""
    shared, item, detail = get_u64(context, words.SHARED_AT), get_i64(plan, _ITEM), get_i64(plan, _COMBINE)
    allocation, swizzle = get_i64(plan, _ALLOCATION), get_i64(plan, _SWIZZLE)
    to = _content(context, allocation, address)
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


@subroutine(INDEX, ADDRESS, ADDRESS, INDEX, TRUTH)
def _copy(context, plan, rows, loads):
    """Copy all rows of a tile; returns 0 or a status."""
    rank, item, place = get_i64(plan, _RANK), get_i64(plan, _ITEM), get_i64(plan, _PLACE)
    row_bytes = get_i64(plan, _BOX) * item
    low = max(np.int64(0), -place)
    high = min(get_i64(plan, _BOX), get_i64(plan, _SIZE) - place)
    for row in range(rows):
        rest, address, inside = np.int64(row), moved(get_u64(plan, _BASE), place * item), high > low
        for d in range(1, rank):
            box = get_i64(plan, _BOX + d)
            at = get_i64(plan, _PLACE + d) + rest % box * get_i64(plan, _STEP + d)
            rest //= box
            inside = inside and at >= 0 and at < get_i64(plan, _SIZE + d)
            address = moved(address, at * get_i64(plan, _STRIDE + d))
        first, last = (low * item, high * item) if inside else (np.int64(0), np.int64(0))
        status = _find(context, plan, address, first, last)
        if status != 0:
            return status
        in_shared = moved(get_u64(plan, SHARED), row * row_bytes)
        if loads:
            if inside and get_u64(get_u64(context, words.ALLOCATION_STALE), get_i64(plan, _ALLOCATION)) != np.uint64(0):
                return np.int64(words.STALE)
            _load_row(context, plan, in_shared, address, first, last)
        elif inside:
            _store_row(context, plan, in_shared, address, first, last)
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _fill(context, registers, op, plan, lane):
    """Make the plan of a copy from its registers and, for a tile, its tensor map. Returns 0 or a status."""
    detail = get_n32(op, micro.DETAIL)
    set_i64(plan, _RANK, detail >> micro.RANK_SHIFT & 7)
    set_i64(plan, _COMBINE, get_n32(op, micro.IMMEDIATE))
    set_i64(plan, _ALLOCATION, -1)
    set_u64(plan, SHARED, np.uint64(get_u32(row_of(registers, op, micro.SOURCE), lane)))
    address = lane_address(row_of(registers, op, micro.SECOND_SOURCE), lane)
    if get_i64(plan, _RANK) != 0:
        status = _read_map(context, address, plan)
        places = row_of(registers, op, micro.FIFTH_SOURCE)
        for d in range(get_i64(plan, _RANK)):
            set_i64(plan, _PLACE + d, get_i32(moved(places, 128 * d), lane))
        if status == 0 and get_u64(plan, _BASE) & np.uint64(15) != np.uint64(0):
            return _refused(context, np.int64(micro.UNALIGNED), get_u64(plan, _BASE))
        return status
    item = get_n32(op, micro.SECOND_IMMEDIATE)
    set_i64(plan, _RANK, 1)
    set_i64(plan, _ITEM, item)
    set_i64(plan, _SWIZZLE, 0)
    set_u64(plan, _BASE, address)
    count = get_n32(row_of(registers, op, micro.THIRD_SOURCE), lane) * _PIECE // item
    set_i64(plan, _SIZE, count)
    set_i64(plan, _BOX, count)
    set_i64(plan, _PLACE, 0)
    if address & np.uint64(15) != np.uint64(0):
        return _refused(context, np.int64(micro.UNALIGNED), address)
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, ADDRESS)
def prepare(context, registers, op, lane, plan):
    """Make the plan of a copy, PLAN_WORDS words, and check what it says of shared memory. Returns 0 or a status.

    SHARED and BYTES of the plan then are place and size in shared memory, BARRIER is the place of a load's mbarrier.
    """
    tile = get_n32(op, micro.DETAIL) >> micro.RANK_SHIFT & 7 != 0
    status = _fill(context, registers, op, plan, lane)
    if status != 0:
        return status
    rows, own = np.int64(1), get_u64(context, words.SHARED_BASE)  # the copy reaches the block's own memory only
    shared = get_u64(plan, SHARED) - own
    set_u64(plan, SHARED, shared)
    for d in range(1, get_i64(plan, _RANK)):
        rows *= get_i64(plan, _BOX + d)
    whole = rows * get_i64(plan, _BOX) * get_i64(plan, _ITEM)
    set_i64(plan, BYTES, whole)
    alignment = np.uint64(127) if tile else np.uint64(15)
    if shared & alignment != np.uint64(0) or moved(shared, whole) > get_u64(context, words.SHARED_BYTES):
        return _refused(context, np.int64(micro.OUTSIDE_SHARED), shared)
    if get_n32(op, micro.DETAIL) & micro.DIRECTION_MASK == micro.COPY_LOAD:
        barrier = np.uint64(get_u32(row_of(registers, op, micro.FOURTH_SOURCE), lane))
        if barrier & np.uint64(7) != np.uint64(0) or moved(barrier - own, 8) > get_u64(context, words.SHARED_BYTES):
            return _refused(context, np.int64(micro.NO_BARRIER), barrier)
        set_u64(plan, BARRIER, barrier - own)
    return status


def copy_in_bulk(context, registers, op, mask, warp):
    """Execute a bulk copy, once for the threads in `mask`. Returns 0 or a status."""
    plan = scratch(PLAN_WORDS)
    status = prepare(context, registers, op, first_set(mask), plan)
    if status != 0:
        return status
    rows = get_i64(plan, BYTES) // max(np.int64(1), get_i64(plan, _BOX) * get_i64(plan, _ITEM))
    moves = get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT == 0
    if get_n32(op, micro.DETAIL) & micro.DIRECTION_MASK == micro.COPY_LOAD:
        if moves:
            status = _copy(context, plan, rows, True)
        if status == 0:
            barrier = get_u64(context, words.SHARED_BASE) + get_u64(plan, BARRIER)
            arrive_at(context, barrier, np.uint64(0), np.uint64(0) - get_u64(plan, BYTES), 0)
        return status
    allocation = _allocation(context, get_u64(plan, _BASE), np.int64(1))
    if allocation < 0:
        return _refused(context, np.int64(micro.BEYOND), get_u64(plan, _BASE))
    if not moves:
        set_u64(get_u64(context, words.ALLOCATION_STALE), allocation, np.uint64(1))
        return status
    if get_u64(get_u64(context, words.ALLOCATION_LENT), allocation) != np.uint64(0):
        set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, allocation)
        return np.int64(words.LENT)
    return _copy(context, plan, rows, False)
