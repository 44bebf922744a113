"""What the watching executor checks before each access: bounds, alignment, and for shared memory races, copies that
nobody waited for and reads of what nobody wrote.

Shared memory has a shadow: of each granule the last write and two readers of different warps. A read is held against
the write, a write against all three. Accesses that are not ordered (`watch_order.ordered`) race, unless both are
atomic, or the later write leaves the bytes as they are (compute-sanitizer calls a write of the same value harmless,
too). Two lanes of one store that write different values to one place race.

Two readers a granule are enough where all barriers are of the whole block; with barriers of some warps a race with a
third reader can be missed. None is reported that is none.
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
from gemmsim.trace.sanitizer.finding_table import report
from gemmsim.trace.sanitizer.ordering import clocks_of, complete, joins_of, ordered, own_of

# mypy: disable-error-code="no-untyped-def"


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX)
def check_access(context, state, op, mask, active, warp):
    """Check a memory operation of the lanes in `mask`, of a path with the lanes `active`, before it is executed.

    Returns the lanes that may execute it: those out of bounds or misaligned are reported and left out.
    """
    how, rows = get_n32(op, micro.ACCESS), row_of(state, op, micro.SOURCE)
    space = (how >> micro.SPACE_SHIFT) & micro.SPACE_MASK
    if space == micro.GLOBAL:
        return _global(context, op, mask, warp, rows, how)
    if space == micro.SHARED:
        return _shared(context, state, op, mask, active, warp, rows, how)
    if space != micro.GENERIC:
        return mask
    high = moved(rows, 128)
    shared, local = equal_lanes(high, words.SHARED_WINDOW) & mask, equal_lanes(high, words.LOCAL_WINDOW) & mask
    rest = mask & ~(shared | local)
    if rest != 0:
        rest = _global(context, op, rest, warp, rows, how)
    if shared != 0:
        shared = _shared(context, state, op, shared, active, warp, rows, how)
    return rest | shared | local


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def check_matrix_load(context, state, op, active, warp):
    """The same for a matrix load, of which 8 lanes a matrix give the address of a row of 16 bytes each; all or none."""
    asked = np.uint32(np.uint32(0xFFFFFFFF) >> np.uint32(32 - 8 * (get_n32(op, micro.DETAIL) & 7)))
    fine = _shared(context, state, op, asked, active, warp, row_of(state, op, micro.SOURCE), get_n32(op, micro.ACCESS))
    return np.uint32(0xFFFFFFFF) if fine == asked else np.uint32(0)


@subroutine(INDEX, INDEX)
def _kind(how):
    if how & micro.ASYNC_BIT != 0:
        return np.int64(shadow.COPY)
    kind = how >> micro.KIND_SHIFT
    return (
        np.int64(shadow.READ)
        if kind == micro.LOAD
        else np.int64(shadow.WRITTEN)
        if kind == micro.STORE
        else np.int64(shadow.ATOMIC)
    )


@subroutine(NOTHING, ADDRESS, INDEX, ADDRESS, INDEX, INDEX, ADDRESS)
def _alone(context, kind, op, warp, lane, address):
    """A finding that concerns one access."""
    how = get_n32(op, micro.ACCESS)
    at, size, access = get_n32(op, micro.INSTRUCTION), how & micro.SIZE_MASK, _kind(how)
    report(context, kind, at, access, warp, lane, -1, shadow.NOTHING, 0, 0, np.int64(address), size)


@subroutine(WORD, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS, INDEX)
def _global(context, op, mask, warp, rows, how):
    size, fine = how & micro.SIZE_MASK, mask
    checked = np.int64(1) if how & micro.PARTIAL_BIT != 0 else size
    starts, sizes = get_u64(context, words.ALLOCATION_START), get_u64(context, words.ALLOCATION_SIZE)
    last = np.int64(0)  # the allocation of the lane before
    for lane in range(32):
        if not has(mask, lane):
            continue
        address = lane_address(rows, lane)
        found = address & np.uint64(size - 1) == np.uint64(0)
        if not found:
            _alone(context, shadow.MISPLACED, op, warp, lane, address)
        else:
            found = _within(address, checked, get_u64(starts, last), get_u64(sizes, last))
            for i in range(get_i64(context, words.ALLOCATIONS)):
                if not found and _within(address, checked, get_u64(starts, i), get_u64(sizes, i)):
                    found, last = True, np.int64(i)
            if not found:
                _alone(context, shadow.OUTSIDE, op, warp, lane, address)
        if not found:
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
    return fine


@subroutine(TRUTH, ADDRESS, INDEX, ADDRESS, ADDRESS)
def _within(address, size, start, length):
    return address >= start and moved(address, size - 1) - start < length


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX, ADDRESS, INDEX)
def _shared(context, state, op, mask, active, warp, rows, how):
    size, kind, fine = how & micro.SIZE_MASK, _kind(how), mask
    limit, joins = get_u64(context, words.SHARED_BYTES), joins_of(context, warp)
    header = get_u64(context, words.FINDINGS_AT)
    set_i64(header, shadow.SERIAL, get_i64(header, shadow.SERIAL) + 1)
    own = get_u64(context, words.OWN_SHARED_BYTES)
    stamp = get_i64(clocks_of(context, warp), warp) << shadow.CLOCK_SHIFT | warp << shadow.WARP_SHIFT
    stamp = stamp | kind << shadow.KIND_SHIFT | get_n32(op, micro.INSTRUCTION)
    beside = np.int64(active) << 32 | joins & 0xFFFFFFFF
    if kind == shadow.COPY:
        beside = get_i64(own_of(context, warp), shadow.GROUP)
    before = np.uint64(0xFFFFFFFFFFFFFFFF)
    for lane in range(32):
        if not has(mask, lane):
            continue
        address = np.uint64(get_u32(rows, lane))
        misplaced = address & np.uint64(size - 1) != np.uint64(0)
        # Compilers read beyond an array's end within the unit in which shared memory is handed out; they do not write.
        end = limit if kind == shadow.READ else own
        if misplaced or moved(address, size) > end:
            _alone(context, shadow.MISPLACED if misplaced else shadow.OUTSIDE, op, warp, lane, address)
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
        elif (kind != shadow.READ or address != before) and address < own:
            before = address
            who = stamp | np.int64(lane) << shadow.LANE_SHIFT
            _place(context, state, op, lane, np.int64(address), who, beside, active)
    return fine


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, INDEX, WORD)
def _place(context, state, op, lane, address, stamp, beside, active):
    """One lane's access to shared memory, a granule after the other."""
    size, warp, kind = (
        get_n32(op, micro.ACCESS) & micro.SIZE_MASK,
        (stamp >> shadow.WARP_SHIFT) & 31,
        (stamp >> shadow.KIND_SHIFT) & 3,
    )
    shift, serial = get_i64(context, words.GRANULE_SHIFT), get_i64(get_u64(context, words.FINDINGS_AT), shadow.SERIAL)
    first = address >> shift
    for granule in range(first, (address + size - 1 >> shift) + 1):
        entry = moved(get_u64(context, words.SHADOW_AT), 8 * shadow.SHADOW_WORDS * granule)
        last = get_i64(entry, shadow.WRITE)
        if last == 0 and kind in (shadow.READ, shadow.ATOMIC):
            _alone(context, shadow.UNWRITTEN, op, warp, lane, np.uint64(address))
        if last != 0 and not (kind == shadow.ATOMIC and (last >> shadow.KIND_SHIFT) & 3 == shadow.ATOMIC):
            with_last = get_i64(entry, shadow.WRITE_WITH)
            if get_i64(entry, shadow.WRITE_SERIAL) == serial and kind != shadow.READ:
                if not _same_data(state, op, lane, (last >> shadow.LANE_SHIFT) & 31, size):
                    _pair(context, op, stamp, last, shadow.RACE, address)
            elif not ordered(context, last, with_last, warp, lane, active):
                waited = (last >> shadow.KIND_SHIFT) & 3 != shadow.COPY or complete(context, last, with_last, warp) != 0
                if not waited:
                    _pair(context, op, stamp, last, shadow.UNWAITED, address)
                elif kind in (shadow.READ, shadow.ATOMIC) or not _unchanged(context, state, op, lane, address, size):
                    _pair(context, op, stamp, last, shadow.RACE, address)
        if kind == shadow.READ:
            _read(context, entry, stamp, beside, lane, active)
        else:
            for slot in range(shadow.READER, shadow.SECOND_READER_WITH, 2):
                reader = get_i64(entry, slot)
                if reader != 0 and not ordered(context, reader, get_i64(entry, slot + 1), warp, lane, active):
                    _pair(context, op, stamp, reader, shadow.RACE, address)
            set_i64(entry, shadow.WRITE, stamp)
            set_i64(entry, shadow.WRITE_WITH, beside)
            set_i64(entry, shadow.WRITE_SERIAL, serial)
            set_i64(entry, shadow.READER, 0)
            set_i64(entry, shadow.SECOND_READER, 0)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, WORD)
def _read(context, entry, stamp, beside, lane, active):
    """Note a reader in place of one that came before it, so that the two kept are of different warps."""
    warp = (stamp >> shadow.WARP_SHIFT) & 31
    for slot in range(shadow.READER, shadow.SECOND_READER_WITH, 2):
        reader = get_i64(entry, slot)
        mine = reader == 0 or (reader >> shadow.WARP_SHIFT) & 31 == warp
        if mine or ordered(context, reader, get_i64(entry, slot + 1), warp, lane, active):
            set_i64(entry, slot, stamp)
            set_i64(entry, slot + 1, beside)
            return


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def _pair(context, op, stamp, other, kind, address):
    """A finding between the access of now and an earlier one."""
    size, access, other_access = (
        get_n32(op, micro.ACCESS) & micro.SIZE_MASK,
        (stamp >> shadow.KIND_SHIFT) & 3,
        (other >> shadow.KIND_SHIFT) & 3,
    )
    warp, lane = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    other_warp, other_lane = (other >> shadow.WARP_SHIFT) & 31, (other >> shadow.LANE_SHIFT) & 31
    at, other_at = stamp & shadow.INSTRUCTION_MASK, other & shadow.INSTRUCTION_MASK
    report(context, kind, at, access, warp, lane, other_at, other_access, other_warp, other_lane, address, size)


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _same_data(state, op, lane, other, size):
    """Whether two lanes of a store write the same value."""
    data, same = row_of(state, op, micro.SECOND_SOURCE), True
    for word in range(size + 3 >> 2):
        same &= get_u32(data, 32 * word + lane) == get_u32(data, 32 * word + other)
    return same


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _unchanged(context, state, op, lane, address, size):
    """Whether a lane's store writes what is there already."""
    data, there, same = row_of(state, op, micro.SECOND_SOURCE), moved(get_u64(context, words.SHARED_AT), address), True
    for byte in range(size):
        word = get_n32(data, 32 * (byte >> 2) + lane)
        same &= np.int64(get_u8(there, byte)) == (word >> 8 * (byte & 3)) & 255
    return same
