"""Checks each access before the sanitizing executor executes it: its bounds and alignment, and in shared memory also
races, copies that nobody waited for and reads of what nobody wrote.

Shared memory has a shadow. It remembers of each granule (a few bytes, see `shadow`) the last write and two readers of
different warps. A read is compared with that write, and a write with that write and both readers. Two accesses that are
not ordered (`ordering.ordered`) race, unless both are atomic or the later one writes the bytes that are there already;
compute-sanitizer, too, calls a write of the same value harmless. Two lanes of one store race where they write different
values to one place.

Two readers of a granule are enough where all barriers are of the whole block. With barriers of some warps a race with a
third reader can be missed. No race is reported where there is none.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import (
    equal_lanes,
    get_i64,
    get_n32,
    get_u8,
    get_u32,
    get_u64,
    has,
    lane_address,
    moved,
    row_of,
    set_i64,
)
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report, stamp_of
from gemmsim.trace.sanitizer.ordering import COPY_NOT_WAITED, clocks_of, copy_state, meetings_of, ordered, shadow_of

# mypy: disable-error-code="no-untyped-def"


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX)
def check_access(context, registers, op, mask, active, warp):
    """Check a memory operation of the lanes in `mask`, on a path with the lanes `active`, before it is executed.

    Returns the lanes that may execute it. Those out of bounds or misaligned are reported and left out.
    """
    rows = row_of(registers, op, micro.SOURCE)
    space = (get_n32(op, micro.ACCESS) >> micro.SPACE_SHIFT) & micro.SPACE_MASK
    if space == micro.GLOBAL:
        return _global(context, op, mask, warp, rows)
    if space == micro.SHARED:
        return _shared(context, registers, op, mask, active, warp, rows)
    if space != micro.GENERIC:
        return mask
    high = moved(rows, 128)
    shared, local = equal_lanes(high, words.SHARED_WINDOW) & mask, equal_lanes(high, words.LOCAL_WINDOW) & mask
    rest = mask & ~(shared | local)
    if rest != 0:
        rest = _global(context, op, rest, warp, rows)
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


@subroutine(WORD, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS)
def _global(context, op, mask, warp, rows):
    access, fine = get_n32(op, micro.ACCESS), mask
    size, stamp = access & micro.SIZE_MASK, stamp_of(1, warp, 0, _kind_of(access), get_n32(op, micro.INSTRUCTION))
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
    return fine


@subroutine(TRUTH, ADDRESS, INDEX, ADDRESS, ADDRESS)
def _within(address, size, start, length):
    return address >= start and moved(address, size - 1) - start < length


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX, ADDRESS)
def _shared(context, registers, op, mask, active, warp, rows):
    access, fine = get_n32(op, micro.ACCESS), mask
    size, kind, header = access & micro.SIZE_MASK, _kind_of(access), get_u64(context, words.FINDINGS_AT)
    set_i64(header, shadow.SERIAL, get_i64(header, shadow.SERIAL) + 1)
    limit, own_bytes = get_u64(context, words.SHARED_BYTES), get_u64(context, words.OWN_SHARED_BYTES)
    stamp = stamp_of(get_i64(clocks_of(context, warp), warp), warp, 0, kind, get_n32(op, micro.INSTRUCTION))
    stamp_with = np.int64(active) << 32 | meetings_of(context, warp) & 0xFFFFFFFF
    if kind == shadow.COPY:
        stamp_with = get_i64(shadow_of(context, warp), shadow.GROUP)
    before = np.uint64(0xFFFFFFFFFFFFFFFF)
    for lane in range(32):
        if not has(mask, lane):
            continue
        address, stamp_of_lane = np.uint64(get_u32(rows, lane)), stamp | lane << shadow.LANE_SHIFT
        misplaced = address & np.uint64(size - 1) != np.uint64(0)
        # Compilers read beyond an array's end within the unit in which shared memory is handed out; they do not write.
        end = limit if kind == shadow.READ else own_bytes
        if misplaced or moved(address, size) > end:
            defect = shadow.MISPLACED if misplaced else shadow.OUTSIDE
            report(context, defect, stamp_of_lane, 0, np.int64(address), size)
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
        elif (kind != shadow.READ or address != before) and address < own_bytes:
            before = address
            _check_granules(context, registers, op, np.int64(address), stamp_of_lane, stamp_with, active)
    return fine


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, WORD)
def _check_granules(context, registers, op, address, stamp, stamp_with, active):
    """Check one lane's access to shared memory, granule after granule, and note the access in the shadow."""
    size = get_n32(op, micro.ACCESS) & micro.SIZE_MASK
    warp, lane = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    kind, shift = (stamp >> shadow.KIND_SHIFT) & 3, get_i64(context, words.GRANULE_SHIFT)
    serial = get_i64(get_u64(context, words.FINDINGS_AT), shadow.SERIAL)
    for granule in range(address >> shift, (address + size - 1 >> shift) + 1):
        entry = moved(get_u64(context, words.SHADOW_AT), 8 * shadow.SHADOW_WORDS * granule)
        last, defect = get_i64(entry, shadow.WRITE), np.int64(-1)
        last_kind = (last >> shadow.KIND_SHIFT) & 3
        if last == 0:
            if kind in (shadow.READ, shadow.ATOMIC):
                report(context, shadow.UNWRITTEN, stamp, 0, address, size)
        elif kind != shadow.ATOMIC or last_kind != shadow.ATOMIC:
            last_with = get_i64(entry, shadow.WRITE_WITH)
            if get_i64(entry, shadow.WRITE_SERIAL) == serial and kind != shadow.READ:
                if not _same_data(registers, op, lane, (last >> shadow.LANE_SHIFT) & 31, size):
                    defect = np.int64(shadow.RACE)
            elif not ordered(context, last, last_with, warp, lane, active):
                if last_kind == shadow.COPY and copy_state(context, last, last_with, warp) == COPY_NOT_WAITED:
                    defect = np.int64(shadow.UNWAITED)
                elif kind in (shadow.READ, shadow.ATOMIC) or not _unchanged(context, registers, op, lane, address):
                    defect = np.int64(shadow.RACE)
        if defect >= 0:
            report(context, defect, stamp, last, address, size)
        if kind == shadow.READ:
            _note_reader(context, entry, stamp, stamp_with, active)
        else:
            for slot in range(shadow.READER, shadow.SECOND_READER_WITH, 2):
                reader = get_i64(entry, slot)
                if reader != 0 and not ordered(context, reader, get_i64(entry, slot + 1), warp, lane, active):
                    report(context, shadow.RACE, stamp, reader, address, size)
            set_i64(entry, shadow.WRITE, stamp)
            set_i64(entry, shadow.WRITE_WITH, stamp_with)
            set_i64(entry, shadow.WRITE_SERIAL, serial)
            set_i64(entry, shadow.READER, 0)
            set_i64(entry, shadow.SECOND_READER, 0)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, WORD)
def _note_reader(context, entry, stamp, stamp_with, active):
    """Note a reader in the shadow in place of an earlier one, so that the two readers there are of different warps."""
    warp, lane = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    for slot in range(shadow.READER, shadow.SECOND_READER_WITH, 2):
        reader = get_i64(entry, slot)
        replaced = reader == 0 or (reader >> shadow.WARP_SHIFT) & 31 == warp
        if replaced or ordered(context, reader, get_i64(entry, slot + 1), warp, lane, active):
            set_i64(entry, slot, stamp)
            set_i64(entry, slot + 1, stamp_with)
            return


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _same_data(registers, op, lane, other, size):
    """Whether two lanes of a store write the same value."""
    data, same = row_of(registers, op, micro.SECOND_SOURCE), True
    for word in range(size + 3 >> 2):
        same &= get_u32(data, 32 * word + lane) == get_u32(data, 32 * word + other)
    return same


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _unchanged(context, registers, op, lane, address):
    """Whether a lane's store writes the bytes that are at `address` already."""
    data, same = row_of(registers, op, micro.SECOND_SOURCE), True
    there = moved(get_u64(context, words.SHARED_AT), address)
    for byte in range(get_n32(op, micro.ACCESS) & micro.SIZE_MASK):
        word = get_n32(data, 32 * (byte >> 2) + lane)
        same &= np.int64(get_u8(there, byte)) == (word >> 8 * (byte & 3)) & 255
    return same
