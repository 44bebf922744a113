"""Checks each access of threads before the sanitizing executor executes it: its bounds and alignment, and in shared
memory also races, copies that nobody waited for and reads of what nobody wrote (`granules`).
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import (
    equal_lanes,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    has,
    lane_address,
    moved,
    row_of,
)
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report, stamp_of
from gemmsim.trace.sanitizer.global_granules import check_global
from gemmsim.trace.sanitizer.granules import check_granules, next_serial
from gemmsim.trace.sanitizer.knowledge import clock_of, exit_of, has_ended
from gemmsim.trace.sanitizer.ordering import begin_copy, meetings_of
from gemmsim.trace.sanitizer.unwritten import note_the_same

# mypy: disable-error-code="no-untyped-def"

_IN_BLOCK = np.uint64((1 << words.RANK_SHIFT) - 1)  # the bits of an address that say where it is in a block's memory


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX)
def check_access(context, registers, op, mask, active, warp):
    """Check a memory operation of the lanes in `mask`, on a path with the lanes `active`, before it is executed.

    Returns the lanes that may execute it. Those out of bounds or misaligned are reported and left out.
    """
    rows = row_of(registers, op, micro.SOURCE)
    space = (get_n32(op, micro.ACCESS) >> micro.SPACE_SHIFT) & micro.SPACE_MASK
    if space == micro.GLOBAL:
        return _global(context, registers, op, mask, active, warp, rows)
    if space == micro.SHARED:
        return _shared(context, registers, op, mask, active, warp, rows)
    if space == micro.CONSTANT:
        _constant(context, op, mask, warp, rows)
    if space != micro.GENERIC:
        return mask
    high = moved(rows, 128)
    shared, local = equal_lanes(high, words.SHARED_WINDOW) & mask, equal_lanes(high, words.LOCAL_WINDOW) & mask
    rest = mask & ~(shared | local)
    if rest != 0:
        rest = _global(context, registers, op, rest, active, warp, rows)
    if shared != 0:
        shared = _shared(context, registers, op, shared, active, warp, rows)
    return rest | shared | local


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def check_matrix_move(context, registers, op, active, warp):
    """Check a matrix load. For each of its matrices, 8 lanes each give the address of a row of 16 bytes.

    Returns the mask of all lanes where the load may be executed, and 0 where an address is wrong.
    """
    asked = np.uint32(np.uint32(0xFFFFFFFF) >> np.uint32(32 - 8 * (get_n32(op, micro.DETAIL) & 7)))
    fine = _shared(context, registers, op, asked, active, warp, row_of(registers, op, micro.SOURCE))
    return np.uint32(0xFFFFFFFF) if fine == asked else np.uint32(0)


@subroutine(INDEX, INDEX)
def _kind_of(access):
    if access & micro.ASYNC_BIT != 0:
        return np.int64(shadow.COPY)
    kind = access >> micro.KIND_SHIFT
    if kind == micro.LOAD:
        return np.int64(shadow.READ)
    return np.int64(shadow.WRITTEN) if kind == micro.STORE else np.int64(shadow.ATOMIC)


@subroutine(NOTHING, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS)
def _constant(context, op, mask, warp, rows):
    """Check a load from a constant bank by index. What lies beyond its end reads as zero here."""
    bank, size = np.int64(get_n32(op, micro.DETAIL)), get_n32(op, micro.ACCESS) & micro.SIZE_MASK
    length = get_i64(get_u64(context, words.BANKS_AT), 2 * bank + 1)
    for lane in range(32):
        if has(mask, lane):
            address = np.int64(lane_address(rows, lane))
            if address < 0 or address + size > length:
                stamp = stamp_of(context, 1, warp, lane, shadow.READ, get_n32(op, micro.INSTRUCTION))
                place = bank << shadow.BANK_SHIFT | address & ((1 << shadow.BANK_SHIFT) - 1)
                report(context, shadow.OUTSIDE_BANK, stamp, 0, place, size)


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX, ADDRESS)
def _global(context, registers, op, mask, active, warp, rows):
    access, fine = get_n32(op, micro.ACCESS), mask
    size, clock = access & micro.SIZE_MASK, clock_of(context, warp)
    stamp = stamp_of(context, clock, warp, 0, _kind_of(access), get_n32(op, micro.INSTRUCTION))
    next_serial(context)
    checked = np.int64(1) if access & micro.PARTIAL_BIT != 0 else size
    starts, sizes = get_u64(context, words.ALLOCATION_START), get_u64(context, words.ALLOCATION_SIZE)
    last = np.int64(0)  # the allocation of the lane before
    for lane in range(32):
        if not has(mask, lane):
            continue
        address, defect = lane_address(rows, lane), np.int64(-1)
        if address & np.uint64(size - 1) != np.uint64(0):
            defect = np.int64(shadow.MISPLACED)
        else:
            found = _within(address, checked, get_u64(starts, last), get_u64(sizes, last))
            for i in range(get_i64(context, words.ALLOCATIONS)):
                if not found and _within(address, checked, get_u64(starts, i), get_u64(sizes, i)):
                    found, last = True, np.int64(i)
            if not found:
                defect = np.int64(shadow.OUTSIDE)
        if defect >= 0:
            report(context, defect, stamp | lane << shadow.LANE_SHIFT, 0, np.int64(address), size)
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
        elif get_u64(context, words.BLOCKS_SHADOW_AT) != np.uint64(0):
            its = stamp | lane << shadow.LANE_SHIFT
            check_global(context, registers, op, address, checked, last, its, active)
    return fine


@subroutine(TRUTH, ADDRESS, INDEX, ADDRESS, ADDRESS)
def _within(address, size, start, length):
    return address >= start and moved(address, size - 1) - start < length


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX, ADDRESS)
def _shared(context, registers, op, mask, active, warp, rows):
    """Check an access to shared memory: the block's own or, by a generic address, another block's of the cluster."""
    access, fine = get_n32(op, micro.ACCESS), mask
    size, kind = access & micro.SIZE_MASK, _kind_of(access)
    next_serial(context)
    abroad = (access >> micro.SPACE_SHIFT) & micro.SPACE_MASK == micro.GENERIC
    limit, own_bytes = get_u64(context, words.SHARED_BYTES), get_u64(context, words.OWN_SHARED_BYTES)
    stamp = stamp_of(context, clock_of(context, warp), warp, 0, kind, get_n32(op, micro.INSTRUCTION))
    stamp_with = np.int64(active) << 32 | meetings_of(context, warp) & 0xFFFFFFFF
    if kind == shadow.COPY:
        stamp_with = begin_copy(context, warp)
    before, other = np.uint64(0xFFFFFFFFFFFFFFFF), np.int64(0)
    late = get_n32(op, micro.FLAGS) & micro.TELLS_LATE != 0
    for lane in range(32):
        if not has(mask, lane):
            continue
        address, stamp_of_lane = np.uint64(get_u32(rows, lane)), stamp | lane << shadow.LANE_SHIFT
        base, misplaced = get_u64(context, words.SHARED_BASE), address & np.uint64(size - 1) != np.uint64(0)
        rank = np.int64(address >> np.uint64(words.RANK_SHIFT))
        if abroad and rank < get_i64(context, words.CLUSTER_BLOCKS):
            base = address & ~_IN_BLOCK
        place = address - base
        # Compilers read beyond an array's end within the unit in which shared memory is handed out; they do not write.
        end = limit if kind == shadow.READ else own_bytes
        if misplaced or place > end or moved(place, size) > end:
            defect = shadow.MISPLACED if misplaced else shadow.OUTSIDE
            report(context, defect, stamp_of_lane, 0, np.int64(address), size)
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
        elif abroad and has_ended(context, rank):
            report(context, shadow.ENDED, stamp_of_lane, exit_of(context, rank), np.int64(address), size)
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
        elif (kind != shadow.READ or address != before) and place < own_bytes:
            before, other = address, np.int64(lane)
            check_granules(context, registers, op, np.int64(address), stamp_of_lane, stamp_with, active)
        elif late and address == before:
            note_the_same(context, op, stamp_of_lane, other)
    return fine
