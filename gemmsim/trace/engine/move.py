"""Moves the data of a memory operation between a warp's rows and memory."""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace.llvm.primitives import (
    as_double,
    as_float,
    copy_row,
    double_bits,
    first_set,
    float_bits,
    get_n32,
    get_u8,
    get_u16,
    get_u32,
    get_u64,
    has,
    lane_address,
    moved,
    row_of,
    set_u8,
    set_u16,
    set_u32,
    set_u64,
    splat_row,
)
from gemmsim.trace.micro import (
    ACCESS,
    ADD,
    AND,
    ATOMIC,
    COMPARE,
    COMPARE_FLAG,
    DECREMENT,
    DETAIL,
    EXCHANGE,
    FLOAT,
    FLUSH_BIT,
    INCREMENT,
    KIND_SHIFT,
    LOAD,
    MIN,
    OR,
    RESULT,
    SECOND_RESULT,
    SECOND_SOURCE,
    SIGNED,
    SIGNED_BIT,
    SIZE_MASK,
    THIRD_SOURCE,
    TYPE_MASK,
    TYPE_SHIFT,
    UNMOVED_BIT,
    XOR,
)
from gemmsim.trace.words import PATTERN_BROADCAST, PATTERN_ROW

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)


@subroutine(NOTHING, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS, INDEX, ADDRESS, INDEX)
def move(state, op, mask, rows, delta, stride, written, shape):
    """Load, store or combine for the lanes in `mask`, whose addresses are in the two rows at `rows`.

    delta     what to add to an address to find its place in this process
    stride    bytes from a thread's 32-bit word to its next
    written   what to add to a place to find its byte that says it was stored to; 0 where that is not kept
    shape     PATTERN_KIND of the addresses
    """
    how = get_n32(op, ACCESS)
    if how & UNMOVED_BIT != 0:
        return
    size, kind = how & SIZE_MASK, how >> KIND_SHIFT
    result, data = row_of(state, op, RESULT), row_of(state, op, SECOND_SOURCE)
    if kind == LOAD:
        if shape == PATTERN_BROADCAST and size >= 4:
            at = lane_address(rows, first_set(mask)) + delta
            for word in range(size >> 2):
                splat_row(moved(result, 128 * word), get_u32(at, word), mask)
        elif shape == PATTERN_ROW and size == 4:
            copy_row(result, lane_address(rows, 0) + delta, mask)
        else:
            _load(result, mask, rows, delta, stride, size, how & SIGNED_BIT)
        return
    if kind == ATOMIC:
        _combine(op, state, mask, rows, delta, size)
    elif shape == PATTERN_ROW and size == 4:
        copy_row(lane_address(rows, 0) + delta, data, mask)
    else:
        _store(data, mask, rows, delta, stride, size)
    if written != 0:
        for lane in range(32):
            if has(mask, lane):
                at = lane_address(rows, lane) + delta + written
                for byte in range(size):
                    set_u8(at, byte, 1)


@subroutine(NOTHING, ADDRESS, WORD, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _load(result, mask, rows, delta, stride, size, signed):
    for lane in range(32):
        if not has(mask, lane):
            continue
        at = lane_address(rows, lane) + delta
        if size >= 4:
            for word in range(size >> 2):
                set_u32(result, word * 32 + lane, get_u32(moved(at, word * stride), 0))
            continue
        value = np.int64(get_u16(at, 0)) if size == 2 else np.int64(get_u8(at, 0))
        top = np.int64(0x8000) if size == 2 else np.int64(0x80)
        if signed != 0:
            value = (value ^ top) - top
        set_u32(result, lane, value)


@subroutine(NOTHING, ADDRESS, WORD, ADDRESS, ADDRESS, INDEX, INDEX)
def _store(data, mask, rows, delta, stride, size):
    for lane in range(32):
        if not has(mask, lane):
            continue
        at = lane_address(rows, lane) + delta
        if size == 1:
            set_u8(at, 0, get_u32(data, lane))
        elif size == 2:
            set_u16(at, 0, get_u32(data, lane))
        for word in range(size >> 2):
            set_u32(moved(at, word * stride), 0, get_u32(data, word * 32 + lane))


@subroutine(NOTHING, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS, INDEX)
def _combine(op, state, mask, rows, delta, size):
    """Atomics, lane after lane: the result is the old value (PTX ISA: atom); of COMPARE_FLAG whether the exchange was
    made, as a number and as a predicate."""
    result = row_of(state, op, RESULT)
    data, second = row_of(state, op, SECOND_SOURCE), row_of(state, op, THIRD_SOURCE)
    detail, flag = get_n32(op, DETAIL), row_of(state, op, SECOND_RESULT)
    for lane in range(32):
        if not has(mask, lane):
            continue
        at = lane_address(rows, lane) + delta
        if size == 8:
            old, value, other = get_u64(at, 0), lane_address(data, lane), lane_address(second, lane)
        else:
            old, value = np.uint64(get_u32(at, 0)), np.uint64(get_u32(data, lane))
            other = np.uint64(get_u32(second, lane))
        new = combined(detail, size, old, value, other)
        if detail & 15 == COMPARE_FLAG:
            set_u32(flag, lane, _FULL if old == value else np.uint32(0))
            old = np.uint64(1) if old == value else np.uint64(0)
        if size == 8:
            set_u64(at, 0, new)
            set_u32(result, 32 + lane, np.uint32(old >> np.uint64(32)))
        else:
            set_u32(at, 0, np.uint32(new & np.uint64(0xFFFFFFFF)))
        set_u32(result, lane, np.uint32(old & np.uint64(0xFFFFFFFF)))


@subroutine(ADDRESS, INDEX, INDEX, ADDRESS, ADDRESS, ADDRESS)
def combined(detail, size, old, value, other):
    """What an atomic operation leaves in memory: 32-bit values come and go zero-extended."""
    operation, type_ = detail & 15, (detail >> TYPE_SHIFT) & TYPE_MASK
    if type_ == FLOAT:  # of additions only; they round to nearest
        if size == 8:
            return double_bits(as_double(old) + as_double(value))
        if detail & FLUSH_BIT != 0:
            return _flushed(float_bits(as_float(_flushed(old)) + as_float(_flushed(value))))
        return float_bits(as_float(old) + as_float(value))
    if operation == ADD:
        return old + value
    if operation == EXCHANGE:
        return value
    if operation >= COMPARE:  # and COMPARE_FLAG
        return other if old == value else old
    if operation == AND:
        return old & value
    if operation == OR:
        return old | value
    if operation == XOR:
        return old ^ value
    if operation == INCREMENT:
        return np.uint64(0) if old >= value else old + np.uint64(1)
    if operation == DECREMENT:
        return value if old == np.uint64(0) or old > value else old - np.uint64(1)
    smaller = old < value
    if type_ == SIGNED:
        flip = np.uint64(1) << np.uint64(8 * size - 1)
        smaller = old ^ flip < value ^ flip
    return old if smaller == (operation == MIN) else value


@subroutine(ADDRESS, ADDRESS)
def _flushed(bits):
    """A float32's bits, subnormals as zero."""
    return bits & np.uint64(0x80000000) if bits & np.uint64(0x7F800000) == np.uint64(0) else bits
