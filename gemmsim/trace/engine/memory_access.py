"""Executes the loads, stores and atomics of one warp instruction, and records them in the trace.

An access shape ("pattern") is the offsets of the 32 lanes from a base. Addresses are first compared with the pattern
that the same instruction had when its first lane was last at the same word of a 128-byte line. Where only the base has
moved, the pattern tells bounds, alignment and how to move the data, and no lane is looked at singly.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.clusters import SHARED, of_block
from gemmsim.trace.engine.move import move
from gemmsim.trace.launch_data.device_memory import PIECE_SHIFT
from gemmsim.trace.llvm.primitives import (
    equal_lanes,
    first_set,
    get_i32,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    has,
    inside,
    lane_address,
    matches,
    moved,
    row_of,
    set_i32,
    set_i64,
    set_u8,
    set_u32,
    set_u64,
    splat_row,
)

# mypy: disable-error-code="no-untyped-def"

_LINE_MASK = np.uint64(127)
_FULL = np.uint32(0xFFFFFFFF)


@subroutine(INDEX, ADDRESS, ADDRESS, WORD, ADDRESS)
def _new_pattern(context, rows, mask, base):
    """Find the pattern (access shape) of the addresses of the lanes in `mask`, or add it to the table; returns its
    number.

    rows  address of the two rows that hold the low and high words of the lanes' addresses
    base  the record's base: the lowest address, rounded down to 128 bytes
    """
    counters, table = get_u64(context, words.COUNTERS_AT), get_u64(context, words.HASH_AT)
    patterns = get_u64(context, words.PATTERNS_AT)
    new = get_i64(counters, words.PATTERNS)
    row = moved(patterns, new * (words.PATTERN_WORDS * 8))
    key, high, alignment = np.uint64(mask), np.uint64(0), np.uint64(0)
    low = np.uint64(0xFFFFFFFFFFFFFFFF)
    in_order = True
    for lane in range(32):
        offset = np.uint64(0)
        if has(mask, lane):
            offset = lane_address(rows, lane) - base
            high, low, alignment = max(high, offset), min(low, offset), alignment | offset
        set_u64(row, lane, offset)
        in_order &= offset == moved(get_u64(row, 0), 4 * lane)
        key = (key ^ offset) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    set_u64(row, words.PATTERN_MASK, np.uint64(mask))
    slot = np.int64(key & np.uint64(words.HASH_SLOTS - 1))
    while get_i32(table, slot) >= 0:
        candidate = get_i32(table, slot)
        other = moved(patterns, candidate * (words.PATTERN_WORDS * 8))
        same = True
        for word in range(words.PATTERN_MASK + 1):
            same &= get_u64(other, word) == get_u64(row, word)
        if same:
            return candidate
        slot = (slot + 1) & (words.HASH_SLOTS - 1)
    kind = words.PATTERN_SCATTERED
    if high == low:
        kind = words.PATTERN_BROADCAST
    elif in_order and mask == _FULL:
        kind = words.PATTERN_ROW
    set_i32(table, slot, new)
    set_u64(row, words.PATTERN_HIGH, high)
    set_u64(row, words.PATTERN_ALIGNMENT, alignment)
    set_i64(row, words.PATTERN_KIND, kind)
    set_i64(counters, words.PATTERNS, new + 1)
    return new


@subroutine(ADDRESS, ADDRESS, ADDRESS, WORD, ADDRESS, INDEX)
def record(context, rows, mask, op, warp):
    """Append a record to the trace: the addresses of the lanes in `mask`, which the two rows at `rows` hold.

    Returns the address of their pattern in the table of patterns.
    """
    first, counters = first_set(mask), get_u64(context, words.COUNTERS_AT)
    last_at = get_u64(context, words.LAST_AT)
    # An access that moves inside a line has another pattern at each word of it, and in time comes back to the first.
    word = np.int64(lane_address(rows, first) >> np.uint64(2)) & (words.LAST_WORDS - 1)
    entry = (warp * get_i64(context, words.ACCESSES) + get_n32(op, micro.SLOT)) * words.LAST_WORDS + word
    pattern = get_i32(last_at, entry)
    base, known = np.uint64(0), False
    if pattern >= 0:
        row = moved(get_u64(context, words.PATTERNS_AT), pattern * (words.PATTERN_WORDS * 8))
        if get_u64(row, words.PATTERN_MASK) == np.uint64(mask):
            base = lane_address(rows, first) - get_u64(row, first)
            known = base & _LINE_MASK == np.uint64(0) and matches(rows, row, base, mask)
    if not known:
        base = lane_address(rows, first)
        for lane in range(first + 1, 32):
            if has(mask, lane):
                base = min(base, lane_address(rows, lane))
        base &= ~_LINE_MASK
        pattern = _new_pattern(context, rows, mask, base)
        set_i32(last_at, entry, pattern)
    n = get_i64(counters, words.RECORDS)
    set_i64(counters, words.RECORDS, n + 1)
    set_u32(get_u64(context, words.RECORD_PC_AT), n, get_u32(op, micro.INSTRUCTION))
    set_i32(get_u64(context, words.RECORD_PATTERN_AT), n, pattern)
    set_u64(get_u64(context, words.RECORD_BASE_AT), n, base)
    return moved(get_u64(context, words.PATTERNS_AT), pattern * (words.PATTERN_WORDS * 8))


@subroutine(INDEX, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS, ADDRESS, INDEX)
def blame(context, rows, mask, size, base, limit, beyond):
    """Find the first lane that is misaligned, or that is not within `limit` bytes from `base` on, and write it and its
    address into the counters.

    Returns MISALIGNED, or the status `beyond`, or 0 where no lane is wrong.
    """
    for lane in range(32):
        address = lane_address(rows, lane)
        misaligned = address & np.uint64(size - 1) != np.uint64(0)
        outside = address - base > limit or moved(address - base, size) > limit
        if has(mask, lane) and (misaligned or outside):
            set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, lane)
            set_u64(get_u64(context, words.COUNTERS_AT), words.FAULT_ADDRESS, address)
            return np.int64(words.MISALIGNED) if misaligned else np.int64(beyond)
    return np.int64(0)


@subroutine(TRUTH, ADDRESS, ADDRESS, WORD)
def _lent(context, rows, mask):
    """Whether any lane's address is in a lent allocation (`DeviceMemory.lent`), whose number is then in FAULT_LANE."""
    starts, sizes = get_u64(context, words.ALLOCATION_START), get_u64(context, words.ALLOCATION_SIZE)
    lent = get_u64(context, words.ALLOCATION_LENT)
    for i in range(get_i64(context, words.ALLOCATIONS)):
        if get_u64(lent, i) != np.uint64(0) and inside(rows, get_u64(starts, i), get_u64(sizes, i)) & mask != 0:
            set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, i)
            return True
    return False


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS, INDEX)
def _global(context, registers, op, mask, warp, rows, size):
    """Access global memory. The lanes of one access may lie in different allocations (array arguments)."""
    moves, kind = get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT == 0, get_n32(op, micro.ACCESS) >> micro.KIND_SHIFT
    stores, stale = moves and kind != micro.LOAD, get_u64(context, words.ALLOCATION_STALE)
    if stores and _lent(context, rows, mask):
        return np.int64(words.LENT)
    row = record(context, rows, mask, op, warp)
    if get_u64(row, words.PATTERN_ALIGNMENT) & np.uint64(size - 1) != np.uint64(0):
        return blame(context, rows, mask, size, np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF), np.int64(0))
    checked = np.int64(1) if get_u32(op, micro.ACCESS) & micro.PARTIAL_BIT != 0 else size
    first = first_set(mask)
    low = lane_address(rows, first) - get_u64(row, first)  # the record's base: the lowest address, rounded down
    last = moved(low + get_u64(row, words.PATTERN_HIGH), checked - 1)
    starts, sizes = get_u64(context, words.ALLOCATION_START), get_u64(context, words.ALLOCATION_SIZE)
    places, positions = get_u64(context, words.ALLOCATION_PLACE), get_u64(context, words.ALLOCATION_POSITION)
    written, touched = get_u64(context, words.WRITTEN_AT), get_u64(context, words.TOUCHED_AT)
    shape = get_i64(row, words.PATTERN_KIND)
    rest = mask
    while rest != 0:
        address, found = lane_address(rows, first_set(rest)), np.int64(-1)
        for i in range(get_i64(context, words.ALLOCATIONS)):
            if moved(address, checked - 1) - get_u64(starts, i) < get_u64(sizes, i) and address >= get_u64(starts, i):
                found = np.int64(i)
        if found < 0:
            set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, first_set(rest))
            set_u64(get_u64(context, words.COUNTERS_AT), words.FAULT_ADDRESS, address)
            return np.int64(words.OUT_OF_BOUNDS)
        start, length, now = get_u64(starts, found), get_u64(sizes, found), rest
        if low < start or last - start >= length:  # starts are multiples of 128
            now = rest & inside(rows, start, moved(length, 1 - checked))
            shape = np.int64(words.PATTERN_SCATTERED)
        place, position = get_u64(places, found), get_u64(positions, found)
        period = get_u64(get_u64(context, words.ALLOCATION_LENT), found)
        if period != np.uint64(0) and low >= start:  # the same content, without another page for each repetition
            place -= (low - start) // period * period
        if moves and kind != micro.STORE and get_u64(stale, found) != np.uint64(0):
            return np.int64(words.STALE)
        if not moves and kind != micro.LOAD:
            set_u64(stale, found, np.uint64(1))
        move(context, registers, op, now, rows, place - start, written + position - place, shape)
        if stores:
            for lane in range(32):
                if has(now, lane):
                    piece = (lane_address(rows, lane) - start + position) >> np.uint64(PIECE_SHIFT)
                    set_u8(touched, np.int64(piece), 1)
        rest = rest & ~now
    return np.int64(0)


@subroutine(NOTHING, ADDRESS, ADDRESS)
def place_newest(context, base):
    """Give the newest record another base."""
    newest = get_i64(get_u64(context, words.COUNTERS_AT), words.RECORDS) - 1
    set_u64(get_u64(context, words.RECORD_BASE_AT), newest, base)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS, INDEX, ADDRESS)
def _shared(context, registers, op, mask, warp, rows, size, base):
    """Access the shared memory that begins at `base` in the cluster's window: the block's own or another block's."""
    row = record(context, rows, mask, op, warp)
    first, limit = first_set(mask), get_u64(context, words.SHARED_BYTES)
    low = lane_address(rows, first) - get_u64(row, first)  # the record's base: the lowest address, rounded down
    last = low - base + get_u64(row, words.PATTERN_HIGH)
    misaligned = get_u64(row, words.PATTERN_ALIGNMENT) & np.uint64(size - 1) != np.uint64(0)
    if low < base or moved(last, size) > limit or misaligned:
        return blame(context, rows, mask, size, base, limit, np.int64(words.SHARED_RANGE))
    at = get_u64(context, words.SHARED_AT)
    if base != np.uint64(0) or get_u64(context, words.SHARED_BASE) != base:
        own = get_u64(context, words.SHARED_BASE) == base
        place_newest(context, low - base if own else low + np.uint64(words.REMOTE_BASE))
        if not own and get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT == 0:
            at = of_block(context, base, SHARED)
            if at == np.uint64(0):
                return np.int64(words.ENDED_BLOCK)
    move(context, registers, op, mask, rows, at - base, np.uint64(0), get_i64(row, words.PATTERN_KIND))
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS, INDEX)
def _in_cluster(context, registers, op, mask, warp, rows, size):
    """Access shared memory by addresses in the cluster's window: the block's own first, then block by block."""
    own = get_u64(context, words.SHARED_BASE)
    rest, blocks = mask, max(get_i64(context, words.CLUSTER_BLOCKS), np.int64(1))
    for turn in range(-1, blocks):
        base = own if turn < 0 else np.uint64(turn) << np.uint64(words.RANK_SHIFT)
        now = rest & inside(rows, base, np.uint64(1 << words.RANK_SHIFT)) if blocks > 1 else rest
        if now != 0:
            status = _shared(context, registers, op, now, warp, rows, size, base)
            if status != 0:
                return status
            rest = rest & ~now
    if rest != 0:
        return blame(context, rows, rest, size, own, get_u64(context, words.SHARED_BYTES), np.int64(words.SHARED_RANGE))
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX, ADDRESS, INDEX)
def _local(context, registers, op, mask, warp, rows, size):
    """Load from local memory or store to it, as `op` says.

    Word k of thread 0 is followed by word k of thread 1, and so on through the 32 threads of the warp.
    """
    stack_words = get_i64(context, words.LOCAL_WORDS)
    stack_bytes = np.uint64(stack_words * 4)
    status = blame(context, rows, mask, size, np.uint64(0), stack_bytes, np.int64(words.OUT_OF_BOUNDS))
    if status != 0:
        return status
    stack = np.uint64(words.LOCAL_BASE + warp * stack_words * 128)
    for lane in range(32):
        if has(mask, lane):
            address = lane_address(rows, lane)
            at = stack + (address >> np.uint64(2)) * np.uint64(128) + (address & np.uint64(3))
            at = moved(at, 4 * lane)
            set_u32(rows, lane, np.uint32(at & np.uint64(0xFFFFFFFF)))
            set_u32(rows, lane + 32, np.uint32(at >> np.uint64(32)))
    record(context, rows, mask, op, warp)
    delta = get_u64(context, words.LOCAL_AT) - np.uint64(words.LOCAL_BASE)
    move(context, registers, op, mask, rows, delta, np.uint64(0), np.int64(words.PATTERN_STACKED))
    return np.int64(0)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD, ADDRESS, INDEX)
def _constant(context, registers, op, mask, rows, size):
    """Load from a constant bank by index. What lies beyond the bank's end reads as zero."""
    bank = get_n32(op, micro.DETAIL)
    at, length = (
        get_u64(get_u64(context, words.BANKS_AT), 2 * bank),
        get_i64(get_u64(context, words.BANKS_AT), 2 * bank + 1),
    )
    result = row_of(registers, op, micro.RESULT)
    for lane in range(32):
        if has(mask, lane):
            offset = np.int64(lane_address(rows, lane))
            for word in range((size + 3) >> 2):
                known = offset + 4 * word + 4 <= length
                value = get_u32(moved(at, offset + 4 * word), 0) if known else np.uint32(0)
                set_u32(result, 32 * word + lane, value)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def access(context, registers, op, mask, warp):
    """Execute a memory operation for the lanes in `mask`, which is not empty; returns 0 or a fault status.

    context    address of the words that `gemmsim.trace.words` names
    registers  address of the warp's rows
    op         address of the micro-operation
    warp       number of the warp in the block
    """
    how = get_n32(op, micro.ACCESS)
    size, space = how & micro.SIZE_MASK, (how >> micro.SPACE_SHIFT) & micro.SPACE_MASK
    rows = row_of(registers, op, micro.SOURCE)
    if space == micro.GLOBAL:
        return _global(context, registers, op, mask, warp, rows, size)
    if space == micro.SHARED:
        return _shared(context, registers, op, mask, warp, rows, size, get_u64(context, words.SHARED_BASE))
    if space == micro.LOCAL:
        return _local(context, registers, op, mask, warp, rows, size)
    if space == micro.CONSTANT:
        written = np.uint32(0xFFFFFFFF) if get_u32(op, micro.FLAGS) & micro.UNIFORM != 0 else mask
        _constant(context, registers, op, written, rows, size)
        return np.int64(0)
    status, high = np.int64(0), moved(rows, 128)
    shared, local = equal_lanes(high, words.SHARED_WINDOW) & mask, equal_lanes(high, words.LOCAL_WINDOW) & mask
    splat_row(high, np.uint32(0), shared | local)
    mask = mask & ~(shared | local)
    if mask != 0:
        status = _global(context, registers, op, mask, warp, rows, size)
    if shared != 0 and status == 0:
        status = _in_cluster(context, registers, op, shared, warp, rows, size)
    if local != 0 and status == 0:
        status = _local(context, registers, op, local, warp, rows, size)
    return status
