"""Combines operands with memory: what the atomics ATOM, ATOMG, ATOMS and RED do, lane after lane."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, DOUBLE, INDEX, NOTHING, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import (
    as_double,
    as_float,
    double_bits,
    float_bits,
    get_n32,
    get_u32,
    get_u64,
    has,
    lane_address,
    moved,
    row_of,
    set_u32,
    set_u64,
)

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)
_LOW, _SIGN = np.uint64(0xFFFFFFFF), np.uint64(1 << 63)
_LOW_COUNT, _HIGH_COUNT = np.uint64((1 << 30) - 1), np.uint64((1 << 31) - 1)  # fields of an mbarrier
# Adding this number to a float64 between 0 and itself, and subtracting it again, rounds to an integer, ties to even.
_ROUND = 2.0**52


def combine(context, registers, op, mask, warp):
    """Execute an atomic for the lanes in `mask`, lane after lane.

    The result is the old value in memory (PTX ISA: atom). The result of COMPARE_FLAG is whether the exchange was made,
    as a number and as a predicate.

    context, registers, op  addresses, as `memory_access.access` takes them
    """
    rows, delta = row_of(registers, op, micro.SOURCE), get_u64(context, words.ATOMIC_DELTA)
    size = get_n32(op, micro.ACCESS) & micro.SIZE_MASK
    result = row_of(registers, op, micro.RESULT)
    data, second = row_of(registers, op, micro.SECOND_SOURCE), row_of(registers, op, micro.THIRD_SOURCE)
    detail, flag = get_n32(op, micro.DETAIL), row_of(registers, op, micro.SECOND_RESULT)
    for lane in range(32):
        if not has(mask, lane):
            continue
        at = lane_address(rows, lane) + delta
        if detail & micro.WORDWISE_BIT != 0:
            for word in range(size >> 2):
                old, value = np.uint64(get_u32(at, word)), np.uint64(get_u32(data, 32 * word + lane))
                set_u32(at, word, np.uint32(combined(detail, np.int64(4), old, value, value) & _LOW))
                set_u32(result, 32 * word + lane, np.uint32(old))
            continue
        if size == 16:
            _combine_128(detail, at, result, data, second, lane)
            continue
        if size == 8:
            old, value, other = get_u64(at, 0), lane_address(data, lane), lane_address(second, lane)
        else:
            old, value = np.uint64(get_u32(at, 0)), np.uint64(get_u32(data, lane))
            other = np.uint64(get_u32(second, lane))
        new = combined(detail, size, old, value, other)
        if detail & micro.OPERATION_MASK == micro.COMPARE_FLAG:
            set_u32(flag, lane, _FULL if old == value else np.uint32(0))
            old = np.uint64(1) if old == value else np.uint64(0)
        if size == 8:
            set_u64(at, 0, new)
            set_u32(result, 32 + lane, np.uint32(old >> np.uint64(32)))
        else:
            set_u32(at, 0, np.uint32(new & _LOW))
        set_u32(result, lane, np.uint32(old & _LOW))
    return np.int64(0)


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _combine_128(detail, at, result, data, second, lane):
    """Exchange 16 bytes of a lane, or compare and exchange them: the only operations of this width."""
    low, high = lane_address(data, lane), lane_address(moved(data, 256), lane)
    old_low, old_high = get_u64(at, 0), get_u64(at, 1)
    if detail & micro.OPERATION_MASK == micro.EXCHANGE:
        set_u64(at, 0, low)
        set_u64(at, 1, high)
    elif low == old_low and high == old_high:
        set_u64(at, 0, lane_address(second, lane))
        set_u64(at, 1, lane_address(moved(second, 256), lane))
    set_u32(result, lane, np.uint32(old_low & _LOW))
    set_u32(result, 32 + lane, np.uint32(old_low >> np.uint64(32)))
    set_u32(result, 64 + lane, np.uint32(old_high & _LOW))
    set_u32(result, 96 + lane, np.uint32(old_high >> np.uint64(32)))


@subroutine(ADDRESS, INDEX, INDEX, ADDRESS, ADDRESS, ADDRESS)
def combined(detail, size, old, value, other):
    """Return what an atomic operation leaves in memory; 32-bit values are zero-extended, arguments and result alike.

    detail      the operation, its type and flags (`micro.TYPE_SHIFT`, `micro.FLUSH_BIT`)
    size        bytes of the value, 4 or 8
    old, value  what memory holds, and the operand
    other       the second operand, which a comparison stores where `old` equals `value`
    """
    operation, type_ = detail & micro.OPERATION_MASK, (detail >> micro.TYPE_SHIFT) & micro.TYPE_MASK
    if type_ >= micro.HALF:
        fraction, least = (np.int64(10), np.int64(-14)) if type_ == micro.HALF else (np.int64(7), np.int64(-126))
        low = _small(operation, old, value, fraction, least)
        return low | _small(operation, old >> np.uint64(16), value >> np.uint64(16), fraction, least) << np.uint64(16)
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
    if operation == micro.ARRIVAL:
        return _arrived(old)
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


@subroutine(ADDRESS, ADDRESS)
def _arrived(state):
    """Return an mbarrier's 64 bits after one more arrival.

    The code that compilers make for mbarrier.init, test_wait, arrive_drop and pending_count on sm_80 tells the fields:
    the low 30 bits are minus the number of arrivals that a phase expects, the low 31 bits of the high word minus the
    number of those still missing, and the top bit is the phase. The last arrival of a phase changes that bit, and all
    arrivals are missing again.
    """
    high = (state >> np.uint64(32)) + np.uint64(1)
    if high & _HIGH_COUNT == np.uint64(0):
        expected = (np.uint64(0) - state) & _LOW_COUNT
        high = high | ((np.uint64(0) - expected) & _HIGH_COUNT)
    return (state & _LOW) | (high & _LOW) << np.uint64(32)


@subroutine(ADDRESS, INDEX, ADDRESS, ADDRESS, INDEX, INDEX)
def _small(operation, old, value, fraction, least):
    """Return the sum, minimum or maximum of two floats of 16 bits, rounded to nearest even.

    fraction  number of bits of their fraction: 10 or 7
    least     exponent of their least normal number: -14 or -126
    """
    a, b = old & np.uint64(0xFFFF), value & np.uint64(0xFFFF)
    magnitudes, infinity = np.uint64(0x7FFF), np.uint64(0x7FFF) >> np.uint64(fraction) << np.uint64(fraction)
    if operation != micro.ADD:
        if a & magnitudes > infinity:  # the other one where one is not a number
            return b if b & magnitudes <= infinity else np.uint64(0x7FFF)
        if b & magnitudes > infinity:
            return a
        smaller = _ordered(a) < _ordered(b)
        return a if smaller == (operation == micro.MIN) else b
    if a & magnitudes > infinity or b & magnitudes > infinity:
        return np.uint64(0x7FFF)
    total = _widened(a, fraction, least) + _widened(b, fraction, least)
    return _narrowed(total, fraction, least)


@subroutine(ADDRESS, ADDRESS)
def _ordered(bits):
    """Return a number that orders the bits of 16-bit floats as their values; -0 comes before 0."""
    return np.uint64(0xFFFF) - bits if bits & np.uint64(0x8000) != np.uint64(0) else bits | np.uint64(0x8000)


@subroutine(DOUBLE, ADDRESS, INDEX, INDEX)
def _widened(bits, fraction, least):
    """Convert a 16-bit float that is no NaN to float64. That is exact."""
    field = np.int64((bits & np.uint64(0x7FFF)) >> np.uint64(fraction))
    digits = np.int64(bits & np.uint64((1 << fraction) - 1))
    if field == np.int64(0x7FFF) >> fraction:
        magnitude = as_double(np.uint64(0x7FF0000000000000))
    else:
        if field > 0:
            digits += np.int64(1) << fraction
            field -= 1
        magnitude = np.float64(digits) * as_double(np.uint64(1023 + least - fraction + field) << np.uint64(52))
    return -magnitude if bits & np.uint64(0x8000) != np.uint64(0) else magnitude


@subroutine(ADDRESS, DOUBLE, INDEX, INDEX)
def _narrowed(value, fraction, least):
    """Round a float64 to a 16-bit float, to nearest even; what is no number becomes 0x7FFF."""
    bits = double_bits(value)
    if bits & ~_SIGN > np.uint64(0x7FF0000000000000):
        return np.uint64(0x7FFF)
    sign, magnitude = bits >> np.uint64(48) & np.uint64(0x8000), as_double(bits & ~_SIGN)
    infinity = np.uint64(0x7FFF) >> np.uint64(fraction) << np.uint64(fraction)
    exponent = max(np.int64((bits >> np.uint64(52)) & np.uint64(0x7FF)) - 1023, least)
    if exponent > 1 - least:
        return sign | infinity
    unit = as_double(np.uint64(1023 + exponent - fraction) << np.uint64(52))  # of the last place
    places = np.uint64(np.int64((magnitude / unit + _ROUND) - _ROUND))
    return sign | min((np.uint64(exponent - least) << np.uint64(fraction)) + places, infinity)
