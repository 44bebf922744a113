"""Says what a bulk copy does: its plan, made of the registers of the instruction and, for a tile, of its tensor map.

What a tensor map holds where is told in `gemmsim.launch.tensor_maps`; a kernel may make one itself. On an H200 a load
whose innermost coordinate is not at a multiple of 16 bytes ends in an illegal instruction, as does a store whose tile
begins before the array; both are refused.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.plan_words import (
    ALLOCATION,
    BARRIER,
    BASE,
    BOX,
    BYTES,
    COMBINE,
    CONVERTS,
    ITEM,
    MAP,
    PLACE,
    RANK,
    SHARED,
    SIZE,
    STEP,
    STRIDE,
    SWIZZLE,
)
from gemmsim.trace.llvm.primitives import (
    get_i32,
    get_i64,
    get_n32,
    get_u8,
    get_u32,
    get_u64,
    lane_address,
    moved,
    row_of,
    set_i64,
    set_u64,
)

# mypy: disable-error-code="no-untyped-def"

# Of each type of a tensor map: bytes, and type in an atomic
_ITEM_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2)
_FLUSHED, _ROUNDED = 8, 0x10000  # type of f32.ftz, and the flag that makes tf32 of f32
_INTEGERS = (micro.UNSIGNED, micro.UNSIGNED, micro.UNSIGNED, micro.SIGNED, micro.UNSIGNED, micro.SIGNED)
_TYPES = (*_INTEGERS, micro.HALF, micro.FLOAT, micro.FLOAT, micro.FLOAT, micro.BRAIN)
_TILE_ALIGNMENT, _RUN_ALIGNMENT = np.uint64(127), np.uint64(15)
_IN_BLOCK = np.uint64((1 << words.RANK_SHIFT) - 1)  # the bits of an address that say where it is in a block's memory
PIECE = 16  # bytes that a swizzle keeps together


@subroutine(INDEX, ADDRESS, INDEX, ADDRESS)
def refused(context, reason, address):
    """Note why a copy cannot be executed; returns the status that says so."""
    set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, reason)
    set_u64(get_u64(context, words.COUNTERS_AT), words.FAULT_ADDRESS, address)
    return np.int64(words.BAD_COPY)


@subroutine(INDEX, ADDRESS, ADDRESS, INDEX)
def allocation_of(context, address, size):
    """Return the number of the allocation that holds `size` bytes from an address on, -1 where none does."""
    for i in range(get_i64(context, words.ALLOCATIONS)):
        offset = address - get_u64(get_u64(context, words.ALLOCATION_START), i)
        length = get_u64(get_u64(context, words.ALLOCATION_SIZE), i)
        if offset < length and moved(offset, size) <= length:
            return np.int64(i)
    return np.int64(-1)


@subroutine(ADDRESS, ADDRESS, INDEX, ADDRESS)
def content_of(context, allocation, address):
    """Return where in this process the content of a simulated address is."""
    offset = address - get_u64(get_u64(context, words.ALLOCATION_START), allocation)
    period = get_u64(get_u64(context, words.ALLOCATION_LENT), allocation)
    if period != np.uint64(0):
        offset -= offset // period * period
    return get_u64(get_u64(context, words.ALLOCATION_PLACE), allocation) + offset


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS)
def _read_map(context, address, plan):
    """Fill a plan with what the tensor map at an address says. Returns 0 or a status."""
    allocation = allocation_of(context, address, np.int64(128))
    if allocation < 0:
        return refused(context, np.int64(micro.NO_MAP), address)
    if get_u64(get_u64(context, words.ALLOCATION_STALE), allocation) != np.uint64(0):
        return np.int64(words.STALE)
    at = content_of(context, allocation, address)
    flags = get_n32(at, 2)
    rank, type_ = ((flags >> 4) & 7) + 1, (flags >> 7) & 15
    if rank != get_i64(plan, RANK):
        return refused(context, np.int64(micro.OTHER_RANK), address)
    if flags & 0x1800 != 0:
        return refused(context, np.int64(micro.INTERLEAVED), address)
    if flags & 0x8000 != 0:
        return refused(context, np.int64(micro.FILLED), address)
    item = _item_bytes(type_)
    set_i64(plan, CONVERTS, np.int64(1) if type_ == _FLUSHED or flags & _ROUNDED != 0 else np.int64(0))
    if item == 0:
        return refused(context, np.int64(micro.NO_MAP), address)
    set_i64(plan, ITEM, item)
    set_u64(plan, BASE, get_u64(at, 0))
    set_i64(plan, SWIZZLE, (flags >> 13) & 3)
    set_i64(plan, COMBINE, get_i64(plan, COMBINE) | _type_detail(type_))
    for d in range(rank):
        set_i64(plan, SIZE + d, get_n32(at, 8 + d) + 1)
        set_i64(plan, STRIDE + d, item)
        step = np.int64(1)
        if d > 0:
            high = (get_n32(at, 7) >> (4 * (d - 1))) & 15
            set_i64(plan, STRIDE + d, (get_n32(at, 2 + d) | high << 32) << 4)
            step = ((get_n32(at, 13) >> (3 * d)) & 7) + 1
        set_i64(plan, STEP + d, step)
        set_i64(plan, BOX + d, (np.int64(get_u8(at, 0x37 + d)) + step) // step)
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


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX)
def make_plan(context, registers, op, plan, lane):
    """Make the plan of a copy from its registers and, for a tile, its tensor map. Returns 0 or a status."""
    detail = get_n32(op, micro.DETAIL)
    set_i64(plan, RANK, detail >> micro.RANK_SHIFT & 7)
    set_i64(plan, COMBINE, get_n32(op, micro.IMMEDIATE))
    set_i64(plan, ALLOCATION, -1)
    set_u64(plan, SHARED, np.uint64(get_u32(row_of(registers, op, micro.SOURCE), lane)))
    address = lane_address(row_of(registers, op, micro.SECOND_SOURCE), lane)
    set_u64(plan, MAP, np.uint64(0))
    if get_i64(plan, RANK) != 0:
        set_u64(plan, MAP, address)
        status = _read_map(context, address, plan)
        places = row_of(registers, op, micro.FIFTH_SOURCE)
        for d in range(get_i64(plan, RANK)):
            set_i64(plan, PLACE + d, get_i32(moved(places, 128 * d), lane))
        if status == 0 and get_u64(plan, BASE) & np.uint64(15) != np.uint64(0):
            return refused(context, np.int64(micro.UNALIGNED), get_u64(plan, BASE))
        if status == 0 and get_i64(plan, PLACE) * get_i64(plan, ITEM) & 15 != 0:
            return refused(context, np.int64(micro.ODD_PLACE), np.uint64(get_i64(plan, PLACE)))
        for d in range(get_i64(plan, RANK)):
            if status == 0 and detail & micro.DIRECTION_MASK == micro.COPY_STORE and get_i64(plan, PLACE + d) < 0:
                return refused(context, np.int64(micro.NEGATIVE_PLACE), np.uint64(-get_i64(plan, PLACE + d)))
        return status
    item = get_n32(op, micro.SECOND_IMMEDIATE)
    set_i64(plan, RANK, 1)
    set_i64(plan, CONVERTS, 0)
    set_i64(plan, ITEM, item)
    set_i64(plan, SWIZZLE, 0)
    set_u64(plan, BASE, address)
    pieces = get_n32(row_of(registers, op, micro.THIRD_SOURCE), lane)
    if detail & micro.MULTICASTS != 0:
        pieces &= 0xFFFF  # the upper half says which blocks get the bytes
    count = pieces * PIECE // item
    set_i64(plan, SIZE, count)
    set_i64(plan, BOX, count)
    set_i64(plan, PLACE, 0)
    if address & np.uint64(15) != np.uint64(0):
        return refused(context, np.int64(micro.UNALIGNED), address)
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, ADDRESS)
def prepare(context, registers, op, lane, plan):
    """Make the plan of a copy, PLAN_WORDS words, and check what it says of shared memory. Returns 0 or a status.

    SHARED and BYTES of the plan then are place and size in shared memory, BARRIER is the place of a load's mbarrier.
    What all blocks of a mask get lies at the same place in each (PTX ISA, cp.async.bulk), whosever memory the addresses
    name.
    """
    tile = get_n32(op, micro.DETAIL) >> micro.RANK_SHIFT & 7 != 0
    status = make_plan(context, registers, op, plan, lane)
    if status != 0:
        return status
    rows, own = np.int64(1), get_u64(context, words.SHARED_BASE)  # else the copy reaches the block's own memory only
    multicasts = get_n32(op, micro.DETAIL) & micro.MULTICASTS != 0
    shared = get_u64(plan, SHARED) & _IN_BLOCK if multicasts else get_u64(plan, SHARED) - own
    set_u64(plan, SHARED, shared)
    for d in range(1, get_i64(plan, RANK)):
        rows *= get_i64(plan, BOX + d)
    whole = rows * get_i64(plan, BOX) * get_i64(plan, ITEM)
    set_i64(plan, BYTES, whole)
    alignment = _TILE_ALIGNMENT if tile else _RUN_ALIGNMENT
    if shared & alignment != np.uint64(0) or moved(shared, whole) > get_u64(context, words.SHARED_BYTES):
        return refused(context, np.int64(micro.OUTSIDE_SHARED), shared)
    if get_n32(op, micro.DETAIL) & micro.DIRECTION_MASK == micro.COPY_LOAD:
        barrier = np.uint64(get_u32(row_of(registers, op, micro.FOURTH_SOURCE), lane))
        place = barrier & _IN_BLOCK if multicasts else barrier - own
        if barrier & np.uint64(7) != np.uint64(0) or moved(place, 8) > get_u64(context, words.SHARED_BYTES):
            return refused(context, np.int64(micro.NO_BARRIER), barrier)
        set_u64(plan, BARRIER, place)
    return status
