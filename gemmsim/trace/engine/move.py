"""Moves the data of a load, store or atomic between a warp's rows and memory."""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace import micro, words
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

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)


@subroutine(NOTHING, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS, INDEX, ADDRESS, INDEX)
def move(registers, op, mask, rows, delta, stride, written, shape):
    """Load, store or combine for the lanes in `mask`, whose addresses are in the two rows at `rows`.

    delta     what is added to a simulated address to get the address in this process at which its content lies
    stride    bytes from one 32-bit word of a thread to the thread's next
    written   what is added to the simulated address to get its byte of `DeviceMemory.written`; 0 where stores are not
              noted
    shape     PATTERN_KIND of the addresses
    """
    how = get_n32(op, micro.ACCESS)
    if how & micro.UNMOVED_BIT != 0:
        return
    size, kind = how & micro.SIZE_MASK, how >> micro.KIND_SHIFT
    result, data = row_of(registers, op, micro.RESULT), row_of(registers, op, micro.SECOND_SOURCE)
    if kind == micro.LOAD:
        if shape == words.PATTERN_BROADCAST and size >= 4:
            at = lane_address(rows, first_set(mask)) + delta
            for word in range(size >> 2):
                splat_row(moved(result, 128 * word), get_u32(at, word), mask)
        elif shape == words.PATTERN_ROW and size == 4:
            copy_row(result, lane_address(rows, 0) + delta, mask)
        else:
            _load(result, mask, rows, delta, stride, size, how & micro.SIGNED_BIT)
        return
    if kind == micro.ATOMIC:
        _combine(op, registers, mask, rows, delta, size)
    elif shape == words.PATTERN_ROW and size == 4:
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
def _combine(op, registers, mask, rows, delta, size):
    """Execute an atomic, lane after lane.

    The result is the old value in memory (PTX ISA: atom). The result of COMPARE_FLAG is whether the exchange was made,
    as a number and as a predicate.
    """
    result = row_of(registers, op, micro.RESULT)
    data, second = row_of(registers, op, micro.SECOND_SOURCE), row_of(registers, op, micro.THIRD_SOURCE)
    detail, flag = get_n32(op, micro.DETAIL), row_of(registers, op, micro.SECOND_RESULT)
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
        if detail & 15 == micro.COMPARE_FLAG:
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
    """Return what an atomic operation leaves in memory; 32-bit values are zero-extended, arguments and result alike.

    detail      the operation, its type and flags (`micro.TYPE_SHIFT`, `micro.FLUSH_BIT`)
    size        bytes of the value, 4 or 8
    old, value  what memory holds, and the operand
    other       the second operand, which a comparison stores where `old` equals `value`
    """
    operation, type_ = detail & 15, (detail >> micro.TYPE_SHIFT) & micro.TYPE_MASK
    if type_ == micro.FLOAT:  # only additions have this type; they round to nearest
        if size == 8:
            return double_bits(as_double(old) + as_double(value))
        if detail & micro.FLUSH_BIT != 0:
            return _flushed(float_bits(as_float(_flushed(old)) + as_float(_flushed(value))))
        return float_bits(as_float(old) + as_float(value))
    if operation == micro.ADD:
        return old + value
    if operation == micro.EXCHANGE:
        return value
    if operation >= micro.COMPARE:  # and COMPARE_FLAG
        return other if old == value else old
    if operation == micro.AND:
        return old & value
    if operation == micro.OR:
        return old | value
    if operation == micro.XOR:
        return old ^ value
    if operation == micro.INCREMENT:
        return np.uint64(0) if old >= value else old + np.uint64(1)
    if operation == micro.DECREMENT:
        return value if old == np.uint64(0) or old > value else old - np.uint64(1)
    smaller = old < value
    if type_ == micro.SIGNED:
        flip = np.uint64(1) << np.uint64(8 * size - 1)
        smaller = old ^ flip < value ^ flip
    return old if smaller == (operation == micro.MIN) else value


@subroutine(ADDRESS, ADDRESS)
def _flushed(bits):
    """Return the bits of a float32, with a zero of the same sign in place of a subnormal."""
    return bits & np.uint64(0x80000000) if bits & np.uint64(0x7F800000) == np.uint64(0) else bits
