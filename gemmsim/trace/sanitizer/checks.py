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
from gemmsim.trace.micro import (
    ACCESS,
    ASYNC_BIT,
    DETAIL,
    GENERIC,
    GLOBAL,
    INSTRUCTION,
    LOAD,
    PARTIAL_BIT,
    SECOND_SOURCE,
    SHARED,
    SIZE_MASK,
    SOURCE,
    SPACE_MASK,
    SPACE_SHIFT,
    STORE,
)
from gemmsim.trace.micro import KIND_SHIFT as ACCESS_SHIFT
from gemmsim.trace.sanitizer.finding_table import report
from gemmsim.trace.sanitizer.ordering import clocks_of, complete, joins_of, ordered, own_of
from gemmsim.trace.sanitizer.shadow import (
    ATOMIC,
    CLOCK_SHIFT,
    COPY,
    GROUP,
    INSTRUCTION_MASK,
    KIND_SHIFT,
    LANE_SHIFT,
    MISPLACED,
    OUTSIDE,
    RACE,
    READ,
    READER,
    SECOND_READER,
    SECOND_READER_WITH,
    SERIAL,
    SHADOW_WORDS,
    UNWAITED,
    UNWRITTEN,
    WARP_SHIFT,
    WRITE,
    WRITE_SERIAL,
    WRITE_WITH,
    WRITTEN,
)
from gemmsim.trace.sanitizer.shadow import NOTHING as NO_ACCESS
from gemmsim.trace.words import (
    ALLOCATION_SIZE,
    ALLOCATION_START,
    ALLOCATIONS,
    FINDINGS_AT,
    GRANULE_SHIFT,
    LOCAL_WINDOW,
    OWN_SHARED_BYTES,
    SHADOW_AT,
    SHARED_AT,
    SHARED_BYTES,
    SHARED_WINDOW,
)

# mypy: disable-error-code="no-untyped-def"


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX)
def watched(context, state, op, mask, active, warp):
    """Check a memory operation of the lanes in `mask`, of a path with the lanes `active`, before it is executed.

    Returns the lanes that may execute it: those out of bounds or misaligned are reported and left out.
    """
    how, rows = get_n32(op, ACCESS), row_of(state, op, SOURCE)
    space = (how >> SPACE_SHIFT) & SPACE_MASK
    if space == GLOBAL:
        return _global(context, op, mask, warp, rows, how)
    if space == SHARED:
        return _shared(context, state, op, mask, active, warp, rows, how)
    if space != GENERIC:
        return mask
    high = moved(rows, 128)
    shared, local = equal_lanes(high, SHARED_WINDOW) & mask, equal_lanes(high, LOCAL_WINDOW) & mask
    rest = mask & ~(shared | local)
    if rest != 0:
        rest = _global(context, op, rest, warp, rows, how)
    if shared != 0:
        shared = _shared(context, state, op, shared, active, warp, rows, how)
    return rest | shared | local


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def watched_matrix(context, state, op, active, warp):
    """The same for a matrix load, of which 8 lanes a matrix give the address of a row of 16 bytes each; all or none."""
    asked = np.uint32(np.uint32(0xFFFFFFFF) >> np.uint32(32 - 8 * (get_n32(op, DETAIL) & 7)))
    fine = _shared(context, state, op, asked, active, warp, row_of(state, op, SOURCE), get_n32(op, ACCESS))
    return np.uint32(0xFFFFFFFF) if fine == asked else np.uint32(0)


@subroutine(INDEX, INDEX)
def _kind(how):
    if how & ASYNC_BIT != 0:
        return np.int64(COPY)
    kind = how >> ACCESS_SHIFT
    return np.int64(READ) if kind == LOAD else np.int64(WRITTEN) if kind == STORE else np.int64(ATOMIC)


@subroutine(NOTHING, ADDRESS, INDEX, ADDRESS, INDEX, INDEX, ADDRESS)
def _alone(context, kind, op, warp, lane, address):
    """A finding that concerns one access."""
    how = get_n32(op, ACCESS)
    at, size, access = get_n32(op, INSTRUCTION), how & SIZE_MASK, _kind(how)
    report(context, kind, at, access, warp, lane, -1, NO_ACCESS, 0, 0, np.int64(address), size)


@subroutine(WORD, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS, INDEX)
def _global(context, op, mask, warp, rows, how):
    size, fine = how & SIZE_MASK, mask
    checked = np.int64(1) if how & PARTIAL_BIT != 0 else size
    starts, sizes = get_u64(context, ALLOCATION_START), get_u64(context, ALLOCATION_SIZE)
    last = np.int64(0)  # the allocation of the lane before
    for lane in range(32):
        if not has(mask, lane):
            continue
        address = lane_address(rows, lane)
        found = address & np.uint64(size - 1) == np.uint64(0)
        if not found:
            _alone(context, MISPLACED, op, warp, lane, address)
        else:
            found = _within(address, checked, get_u64(starts, last), get_u64(sizes, last))
            for i in range(get_i64(context, ALLOCATIONS)):
                if not found and _within(address, checked, get_u64(starts, i), get_u64(sizes, i)):
                    found, last = True, np.int64(i)
            if not found:
                _alone(context, OUTSIDE, op, warp, lane, address)
        if not found:
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
    return fine


@subroutine(TRUTH, ADDRESS, INDEX, ADDRESS, ADDRESS)
def _within(address, size, start, length):
    return address >= start and moved(address, size - 1) - start < length


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, INDEX, ADDRESS, INDEX)
def _shared(context, state, op, mask, active, warp, rows, how):
    size, kind, fine = how & SIZE_MASK, _kind(how), mask
    limit, joins = get_u64(context, SHARED_BYTES), joins_of(context, warp)
    header = get_u64(context, FINDINGS_AT)
    set_i64(header, SERIAL, get_i64(header, SERIAL) + 1)
    own = get_u64(context, OWN_SHARED_BYTES)
    stamp = get_i64(clocks_of(context, warp), warp) << CLOCK_SHIFT | warp << WARP_SHIFT
    stamp = stamp | kind << KIND_SHIFT | get_n32(op, INSTRUCTION)
    beside = np.int64(active) << 32 | joins & 0xFFFFFFFF
    if kind == COPY:
        beside = get_i64(own_of(context, warp), GROUP)
    before = np.uint64(0xFFFFFFFFFFFFFFFF)
    for lane in range(32):
        if not has(mask, lane):
            continue
        address = np.uint64(get_u32(rows, lane))
        misplaced = address & np.uint64(size - 1) != np.uint64(0)
        # Compilers read beyond an array's end within the unit in which shared memory is handed out; they do not write.
        end = limit if kind == READ else own
        if misplaced or moved(address, size) > end:
            _alone(context, MISPLACED if misplaced else OUTSIDE, op, warp, lane, address)
            fine = fine & ~(np.uint32(1) << np.uint32(lane))
        elif (kind != READ or address != before) and address < own:
            before = address
            who = stamp | np.int64(lane) << LANE_SHIFT
            _place(context, state, op, lane, np.int64(address), who, beside, active)
    return fine


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, INDEX, WORD)
def _place(context, state, op, lane, address, stamp, beside, active):
    """One lane's access to shared memory, a granule after the other."""
    size, warp, kind = get_n32(op, ACCESS) & SIZE_MASK, (stamp >> WARP_SHIFT) & 31, (stamp >> KIND_SHIFT) & 3
    shift, serial = get_i64(context, GRANULE_SHIFT), get_i64(get_u64(context, FINDINGS_AT), SERIAL)
    first = address >> shift
    for granule in range(first, (address + size - 1 >> shift) + 1):
        entry = moved(get_u64(context, SHADOW_AT), 8 * SHADOW_WORDS * granule)
        last = get_i64(entry, WRITE)
        if last == 0 and kind in (READ, ATOMIC):
            _alone(context, UNWRITTEN, op, warp, lane, np.uint64(address))
        if last != 0 and not (kind == ATOMIC and (last >> KIND_SHIFT) & 3 == ATOMIC):
            with_last = get_i64(entry, WRITE_WITH)
            if get_i64(entry, WRITE_SERIAL) == serial and kind != READ:
                if not _same_data(state, op, lane, (last >> LANE_SHIFT) & 31, size):
                    _pair(context, op, stamp, last, RACE, address)
            elif not ordered(context, last, with_last, warp, lane, active):
                waited = (last >> KIND_SHIFT) & 3 != COPY or complete(context, last, with_last, warp) != 0
                if not waited:
                    _pair(context, op, stamp, last, UNWAITED, address)
                elif kind in (READ, ATOMIC) or not _unchanged(context, state, op, lane, address, size):
                    _pair(context, op, stamp, last, RACE, address)
        if kind == READ:
            _read(context, entry, stamp, beside, lane, active)
        else:
            for slot in range(READER, SECOND_READER_WITH, 2):
                reader = get_i64(entry, slot)
                if reader != 0 and not ordered(context, reader, get_i64(entry, slot + 1), warp, lane, active):
                    _pair(context, op, stamp, reader, RACE, address)
            set_i64(entry, WRITE, stamp)
            set_i64(entry, WRITE_WITH, beside)
            set_i64(entry, WRITE_SERIAL, serial)
            set_i64(entry, READER, 0)
            set_i64(entry, SECOND_READER, 0)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, WORD)
def _read(context, entry, stamp, beside, lane, active):
    """Note a reader in place of one that came before it, so that the two kept are of different warps."""
    warp = (stamp >> WARP_SHIFT) & 31
    for slot in range(READER, SECOND_READER_WITH, 2):
        reader = get_i64(entry, slot)
        mine = reader == 0 or (reader >> WARP_SHIFT) & 31 == warp
        if mine or ordered(context, reader, get_i64(entry, slot + 1), warp, lane, active):
            set_i64(entry, slot, stamp)
            set_i64(entry, slot + 1, beside)
            return


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def _pair(context, op, stamp, other, kind, address):
    """A finding between the access of now and an earlier one."""
    size, access, other_access = get_n32(op, ACCESS) & SIZE_MASK, (stamp >> KIND_SHIFT) & 3, (other >> KIND_SHIFT) & 3
    warp, lane = (stamp >> WARP_SHIFT) & 31, (stamp >> LANE_SHIFT) & 31
    other_warp, other_lane = (other >> WARP_SHIFT) & 31, (other >> LANE_SHIFT) & 31
    at, other_at = stamp & INSTRUCTION_MASK, other & INSTRUCTION_MASK
    report(context, kind, at, access, warp, lane, other_at, other_access, other_warp, other_lane, address, size)


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _same_data(state, op, lane, other, size):
    """Whether two lanes of a store write the same value."""
    data, same = row_of(state, op, SECOND_SOURCE), True
    for word in range(size + 3 >> 2):
        same &= get_u32(data, 32 * word + lane) == get_u32(data, 32 * word + other)
    return same


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _unchanged(context, state, op, lane, address, size):
    """Whether a lane's store writes what is there already."""
    data, there, same = row_of(state, op, SECOND_SOURCE), moved(get_u64(context, SHARED_AT), address), True
    for byte in range(size):
        word = get_n32(data, 32 * (byte >> 2) + lane)
        same &= np.int64(get_u8(there, byte)) == (word >> 8 * (byte & 3)) & 255
    return same
