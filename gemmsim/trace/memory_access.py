"""Loads, stores and atomics of one warp instruction, and the record that each leaves in the trace.

Addresses are compared first with the access shape ("pattern") that the same instruction had the last time: if only the base moved,
bounds, alignment and the way to move the data are known from the pattern, and no lane is looked at singly.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gemmsim.trace import micro
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.lower.memory import GLOBAL, SHARED, SIGNED_BIT, SIZE_MASK, SPACE_SHIFT
from gemmsim.trace.raw import (
    as_bits,
    as_float,
    copy_row,
    first_set,
    get_i32,
    get_i64,
    get_u8,
    get_u16,
    get_u32,
    get_u64,
    matches,
    set_i32,
    set_i64,
    set_u8,
    set_u16,
    set_u32,
    set_u64,
    splat_row,
)
from gemmsim.trace.state import (
    ALLOCATION_POSITION,
    ALLOCATION_SIZE,
    ALLOCATION_START,
    ALLOCATIONS,
    CONSTANT_WORDS,
    CONSTANTS,
    COUNTERS_AT,
    FAULT_ADDRESS,
    FAULT_LANE,
    GLOBAL_AT,
    HASH_AT,
    INSTRUCTIONS,
    LAST_AT,
    LOCAL_AT,
    LOCAL_SLOT,
    LOCAL_WORDS,
    MISALIGNED,
    OUT_OF_BOUNDS,
    PATTERN_ALIGNMENT,
    PATTERN_HIGH,
    PATTERN_KIND,
    PATTERN_MASK,
    PATTERN_WORDS,
    PATTERNS,
    PATTERNS_AT,
    RECORD_BASE_AT,
    RECORD_PATTERN_AT,
    RECORD_PC_AT,
    RECORD_WARP_AT,
    RECORDS,
    SHARED_AT,
    SHARED_BYTES,
    SHARED_RANGE,
    WARP_BASE,
    WARPS,
    WRITTEN_AT,
)

# mypy: disable-error-code="no-untyped-def"

_LOAD, _STORE = CONTROL_NUMBER["load"], CONTROL_NUMBER["store"]
_LOAD_CONSTANT = CONTROL_NUMBER["load_constant"]
LOCAL_BASE = 0x7E00_0000_0000  # where the record of a local access says the lane-interleaved stacks lie
HASH_SLOTS = 1 << 18  # twice the most patterns that a trace may have
_LINE_MASK = np.uint64(127)
_FULL = np.uint32(0xFFFFFFFF)
SCATTERED, BROADCAST, WORDS_IN_ORDER = 0, 1, 2  # pattern kinds

_jit = njit(cache=True, boundscheck=False, error_model="numpy")


@_jit
def _lane_address(rows, lane):
    return np.uint64(get_u32(rows, lane)) | np.uint64(get_u32(rows, lane + 32)) << np.uint64(32)


@_jit
def _combine(kind, value_type, old, value, second):
    """One atomic operation on 32-bit words (PTX ISA: atom). Float additions round to nearest, subnormals kept."""
    if kind == 6:
        return value
    if kind == 7:
        return second if old == value else old
    if kind == 3:
        return old & value
    if kind == 4:
        return old | value
    if kind == 5:
        return old ^ value
    if value_type == 2:
        a, b = as_float(old), as_float(value)
        if kind == 0:
            return as_bits(np.float32(a + b))
        return old if (a < b) == (kind == 1) else value
    if kind == 0:
        return np.uint32(old + value)
    if value_type == 1:
        smaller = np.int32(old) < np.int32(value)
    else:
        smaller = old < value
    return old if smaller == (kind == 1) else value


@_jit
def _new_pattern(context, rows, mask, base):
    """Find or make the pattern of these addresses; returns its number."""
    counters, table = get_u64(context, COUNTERS_AT), get_u64(context, HASH_AT)
    patterns = get_u64(context, PATTERNS_AT)
    new = get_i64(counters, PATTERNS)
    row = patterns + np.uint64(new * PATTERN_WORDS * 8)
    key, high, alignment = np.uint64(mask), np.uint64(0), np.uint64(0)
    low = np.uint64(0xFFFFFFFFFFFFFFFF)
    in_order = True
    for lane in range(32):
        offset = np.uint64(0)
        if (mask >> np.uint32(lane)) & np.uint32(1):
            offset = _lane_address(rows, lane) - base
            high, low, alignment = max(high, offset), min(low, offset), alignment | offset
        set_u64(row, lane, offset)
        in_order &= offset == get_u64(row, 0) + np.uint64(4 * lane)
        key = (key ^ offset) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    slot = np.int64(key & np.uint64(HASH_SLOTS - 1))
    while get_i32(table, slot) >= 0:
        candidate = np.int64(get_i32(table, slot))
        other = patterns + np.uint64(candidate * PATTERN_WORDS * 8)
        same = get_u64(other, PATTERN_MASK) == np.uint64(mask)
        for lane in range(32):
            same &= get_u64(other, lane) == get_u64(row, lane)
        if same:
            return candidate
        slot = (slot + 1) & (HASH_SLOTS - 1)
    kind = SCATTERED
    if high == low:
        kind = BROADCAST
    elif in_order and mask == _FULL:
        kind = WORDS_IN_ORDER
    set_i32(table, slot, np.int32(new))
    set_u64(row, PATTERN_MASK, np.uint64(mask))
    set_u64(row, PATTERN_HIGH, high)
    set_u64(row, PATTERN_ALIGNMENT, alignment)
    set_u64(row, PATTERN_KIND, np.uint64(kind))
    set_i64(counters, PATTERNS, new + 1)
    return new


@_jit
def _identify(context, rows, mask, pc, warp):
    """(pattern number, base) of the addresses in the two rows at `rows`; the record is appended by `_append`."""
    first = first_set(mask)
    last_at, entry = get_u64(context, LAST_AT), warp * get_i64(context, INSTRUCTIONS) + pc
    known = np.int64(get_i32(last_at, entry))
    if known >= 0:
        row = get_u64(context, PATTERNS_AT) + np.uint64(known * PATTERN_WORDS * 8)
        if get_u64(row, PATTERN_MASK) == np.uint64(mask):
            base = _lane_address(rows, first) - get_u64(row, first)
            if base & _LINE_MASK == np.uint64(0) and matches(rows, row, base, mask):
                return known, base
    lowest = _lane_address(rows, first)
    for lane in range(32):
        if (mask >> np.uint32(lane)) & np.uint32(1):
            lowest = min(lowest, _lane_address(rows, lane))
    base = lowest & ~_LINE_MASK
    pattern = _new_pattern(context, rows, mask, base)
    set_i32(last_at, entry, np.int32(pattern))
    return pattern, base


@_jit
def _append(context, pc, warp, pattern, base):
    counters = get_u64(context, COUNTERS_AT)
    n = get_i64(counters, RECORDS)
    set_i64(counters, RECORDS, n + 1)
    set_i32(get_u64(context, RECORD_WARP_AT), n, np.int32(get_i64(counters, WARP_BASE) + warp))
    set_i32(get_u64(context, RECORD_PC_AT), n, np.int32(pc))
    set_i32(get_u64(context, RECORD_PATTERN_AT), n, np.int32(pattern))
    set_u64(get_u64(context, RECORD_BASE_AT), n, base)


@_jit
def _allocation(context, first, last):
    """Number of the allocation that holds the bytes first..last, or -1."""
    starts, sizes = get_u64(context, ALLOCATION_START), get_u64(context, ALLOCATION_SIZE)
    for i in range(get_i64(context, ALLOCATIONS)):
        start, size = get_u64(starts, i), get_u64(sizes, i)
        if first >= start and last - start < size:
            return i
    return np.int64(-1)


@_jit
def _fault(context, rows, mask, size, space, limit):
    """Which lane is wrong and how: a status."""
    counters = get_u64(context, COUNTERS_AT)
    for lane in range(32):
        if not (mask >> np.uint32(lane)) & np.uint32(1):
            continue
        address = _lane_address(rows, lane)
        status = 0
        if address & np.uint64(size - 1):
            status = MISALIGNED
        elif space == GLOBAL:
            if _allocation(context, address, address + np.uint64(size - 1)) < 0:
                status = OUT_OF_BOUNDS
        elif address + np.uint64(size) > limit:
            status = SHARED_RANGE if space == SHARED else OUT_OF_BOUNDS
        if status:
            set_i64(counters, FAULT_LANE, lane)
            set_i64(counters, FAULT_ADDRESS, np.int64(address))
            return status
    return 0


@_jit
def _narrow(value, size, signed):
    """The low byte or half of a word, extended."""
    bits = np.uint32(16 if size == 2 else 8)
    kept = value & ((np.uint32(1) << bits) - np.uint32(1))
    if signed and (kept >> (bits - np.uint32(1))) & np.uint32(1):
        return np.uint32(kept | (_FULL << bits))
    return np.uint32(kept)


@_jit
def _load_lane(at, size, signed):
    if size == 2:
        return _narrow(np.uint32(get_u16(at, 0)), size, signed)
    return _narrow(np.uint32(get_u8(at, 0)), size, signed)


@_jit
def _move(context, kind, state, op, mask, rows, size, access, delta, pattern_kind, stride_words):
    """Move the data: host address of a lane's element is its address + delta (an offset modulo 2**64)."""
    result = state + np.uint64(get_u32(op, micro.RESULT)) * np.uint64(4)
    data = state + np.uint64(get_u32(op, micro.SOURCE + 3)) * np.uint64(4)
    words = size >> 2
    if kind == _LOAD and stride_words == 1 and words >= 1 and pattern_kind == BROADCAST:
        at = _lane_address(rows, first_set(mask)) + delta
        for word in range(words):
            splat_row(result + np.uint64(128 * word), get_u32(at, word), mask)
        return
    if stride_words == 1 and size == 4 and pattern_kind == WORDS_IN_ORDER and kind <= _STORE:
        at = _lane_address(rows, 0) + delta
        if kind == _LOAD:
            copy_row(result, at, mask)
        else:
            copy_row(at, data, mask)
        return
    detail = np.int64(get_u32(op, micro.BARRIER))
    second = state + np.uint64(get_u32(op, micro.SOURCE + 6)) * np.uint64(4)
    for lane in range(32):
        if not (mask >> np.uint32(lane)) & np.uint32(1):
            continue
        at = _lane_address(rows, lane) + delta
        if stride_words > 1:  # local memory: a thread's words lie 32 apart
            at = (_lane_address(rows, lane) >> np.uint64(2)) * np.uint64(128) + np.uint64(4 * lane) + delta
        if kind == _LOAD:
            if words == 0:
                set_u32(result, lane, _load_lane(at, size, access & SIGNED_BIT))
            for word in range(words):
                set_u32(result, word * 32 + lane, get_u32(at, word * stride_words))
        elif kind == _STORE:
            if size == 1:
                set_u8(at, 0, np.uint8(get_u32(data, lane) & np.uint32(0xFF)))
            elif size == 2:
                set_u16(at, 0, np.uint16(get_u32(data, lane) & np.uint32(0xFFFF)))
            for word in range(words):
                set_u32(at, word * stride_words, get_u32(data, word * 32 + lane))
        else:
            old = get_u32(at, 0)
            set_u32(at, 0, _combine(detail & 15, detail >> 4, old, get_u32(data, lane), get_u32(second, lane)))
            set_u32(result, lane, old)


@_jit
def _mark_written(context, rows, mask, size, delta, host):
    written = get_u64(context, WRITTEN_AT) - host
    for lane in range(32):
        if (mask >> np.uint32(lane)) & np.uint32(1):
            at = _lane_address(rows, lane) + delta + written
            for byte in range(size):
                set_u8(at, byte, np.uint8(1))


@_jit
def _load_constant(context, state, op, mask, rows, words):
    result = state + np.uint64(get_u32(op, micro.RESULT)) * np.uint64(4)
    bank, length = get_u64(context, CONSTANTS), get_i64(context, CONSTANT_WORDS)
    for lane in range(32):
        if (mask >> np.uint32(lane)) & np.uint32(1):
            at = np.int64(_lane_address(rows, lane) >> np.uint64(2))
            for word in range(words):
                inside = at + word < length
                set_u32(result, word * 32 + lane, get_u32(bank, at + word) if inside else np.uint32(0))


@_jit
def access_memory(kind, state, op, mask, warp, context):
    """Execute a load, store or atomic for the lanes in `mask`; returns 0 or a fault status.

    state, op, context   addresses of the warp's rows, the micro-operation, and the slots named in `gemmsim.trace.state`
    """
    access = np.int64(get_u32(op, micro.ACCESS))
    size, space = access & SIZE_MASK, access >> SPACE_SHIFT
    rows = state + np.uint64(get_u32(op, micro.SOURCE)) * np.uint64(4)
    if kind == _LOAD_CONSTANT:
        _load_constant(context, state, op, mask, rows, size >> 2)
        return 0
    pc = np.int64(get_u32(op, micro.INSTRUCTION))
    pattern, base = _identify(context, rows, mask, pc, warp)
    row = get_u64(context, PATTERNS_AT) + np.uint64(pattern * PATTERN_WORDS * 8)
    pattern_kind = np.int64(get_u64(row, PATTERN_KIND))
    last = base + get_u64(row, PATTERN_HIGH) + np.uint64(size - 1)
    misaligned = get_u64(row, PATTERN_ALIGNMENT) & np.uint64(size - 1) != np.uint64(0)
    if space == GLOBAL:
        host = get_u64(context, GLOBAL_AT)
        number = _allocation(context, base, last)
        if number < 0:  # the base is rounded down: try the lanes one by one
            first_lane = _lane_address(rows, first_set(mask))
            number = _allocation(context, first_lane, first_lane)
        if number < 0 or misaligned:
            return max(_fault(context, rows, mask, size, space, np.uint64(0)), OUT_OF_BOUNDS)
        start = get_u64(get_u64(context, ALLOCATION_START), number)
        if last - start >= get_u64(get_u64(context, ALLOCATION_SIZE), number) or base < start & ~_LINE_MASK:
            status = _fault(context, rows, mask, size, space, np.uint64(0))
            return status if status else OUT_OF_BOUNDS
        delta = host + get_u64(get_u64(context, ALLOCATION_POSITION), number) - start
        _append(context, pc, warp, pattern, base)
        _move(context, kind, state, op, mask, rows, size, access, delta, pattern_kind, np.int64(1))
        if kind != _LOAD:
            _mark_written(context, rows, mask, size, delta, host)
        return 0
    if space == SHARED:
        limit = get_u64(context, SHARED_BYTES)
        if last >= limit or misaligned:
            return _fault(context, rows, mask, size, space, limit)
        _append(context, pc, warp, pattern, base)
        delta = get_u64(context, SHARED_AT)
        _move(context, kind, state, op, mask, rows, size, access, delta, pattern_kind, np.int64(1))
        return 0
    words = get_i64(context, LOCAL_WORDS)
    limit = np.uint64(words * 4)
    if last >= limit or misaligned or size < 4:
        status = _fault(context, rows, mask, size, space, limit)
        return status if status else MISALIGNED
    stack = get_u64(context, LOCAL_AT) + np.uint64(warp * words * 128)
    _move(context, kind, state, op, mask, rows, size, access, stack, pattern_kind, np.int64(32))
    slot = np.uint64((get_i64(context, LOCAL_SLOT) * get_i64(context, WARPS) + warp) * words)
    for lane in range(32):  # the physical place, for the record
        at = np.uint64(LOCAL_BASE) + (slot + (_lane_address(rows, lane) >> np.uint64(2))) * np.uint64(128)
        at += np.uint64(4 * lane)
        set_u32(rows, lane, np.uint32(at & np.uint64(0xFFFFFFFF)))
        set_u32(rows, lane + 32, np.uint32(at >> np.uint64(32)))
    pattern, base = _identify(context, rows, mask, pc, warp)
    _append(context, pc, warp, pattern, base)
    return 0
