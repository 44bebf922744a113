"""Follows words that are not known in other blocks, as a whole or in their upper halves, through operations on lanes.

Compilers keep a small counter in the lower half of a register whose upper half still holds loaded data. What becomes of
the counter does not depend on these.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, WORD, subroutine
from gemmsim.trace.engine.differences import words
from gemmsim.trace.engine.differences.vectors import shadow_row
from gemmsim.trace.llvm.primitives import (
    alike_lanes,
    copy_row,
    equal_lanes,
    first_set,
    get_i64,
    get_u32,
    get_u64,
    lane_operation,
    masked_row,
    moved,
    splat_row,
)

# mypy: disable-error-code="no-untyped-def"

_FULL, _HIGH, _LOW = np.uint32(0xFFFFFFFF), np.uint32(0xFFFF0000), np.uint32(0xFFFF)
_UNKNOWN, _UNKNOWN_HIGH = np.uint32(words.UNKNOWN), np.uint32(words.UNKNOWN_HIGH)


@subroutine(WORD, ADDRESS)
def unknown_lanes(shadow):
    """Return the lanes of a row, given by its shadow, that are not known as a whole or in their upper halves."""
    return equal_lanes(shadow, _UNKNOWN) | equal_lanes(shadow, _UNKNOWN_HIGH)


@subroutine(WORD, ADDRESS, WORD)
def _differing(own, number):
    """Return which bits of a word may differ by block: all, those of the upper half, or none. A vector is added to the
    word, so that the bits below its lowest one stay as they are."""
    bits = get_u32(get_u64(own, words.BITS_AT), np.int64(number))
    if bits == 0:
        return np.uint32(0)
    return _FULL if bits & _LOW != 0 else _HIGH


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD)
def relate_halves(own, rule, registers, op, lanes):
    """Set the shadow of the result, whose vector is not known, in those of `lanes` in which it may be the leader's all
    the same, or its lower half may. Returns the lanes that are done.
    """
    how, rest = get_i64(rule, words.HALVES), lanes
    for i in range(get_i64(rule, words.SOURCES)):
        shadow = shadow_row(own, moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i)))
        allowed = _FULL if how == words.FROM_BITS else _HIGH
        if get_i64(rule, words.FIXED) >> i & 1 != 0:
            allowed = np.uint32(0)
        for lane in range(32):
            if _differing(own, get_u32(shadow, lane)) & ~allowed != 0:
                rest &= ~(np.uint32(1) << np.uint32(lane))
    done, result = rest, moved(registers, 4 * get_i64(rule, words.RESULT_AT))
    if how == words.FROM_LOW:
        splat_row(shadow_row(own, result), _UNKNOWN_HIGH, rest)
    while how == words.FROM_BITS and rest != 0:
        rest &= ~_relate_bits(own, rule, registers, op, rest)
    return done


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD)
def _relate_bits(own, rule, registers, op, lanes):
    """Set the shadow of the result in the first of `lanes`, and in those with the same vectors, which it returns.

    All bits that may differ are set to zeros and to ones, in each source by itself: what stays the same in the
    result does not depend on them.
    """
    first, group, count = first_set(lanes), lanes, np.int64(0)
    for i in range(get_i64(rule, words.SOURCES)):
        shadow = shadow_row(own, moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i)))
        group &= equal_lanes(shadow, get_u32(shadow, first))
        count += np.int64(1 if get_u32(shadow, first) != 0 else 0)
    scratch, before = get_u64(own, words.SCRATCH_AT), get_u64(own, words.SAVED_AT)
    result, equal, low = 4 * get_i64(rule, words.RESULT_AT), group, group
    for turn in range(np.int64(1) << count):
        place = np.int64(0)
        for i in range(get_i64(rule, words.SOURCES)):
            at = 4 * get_i64(rule, words.SOURCE_AT + i)
            source = moved(registers, at)
            bits = _differing(own, get_u32(shadow_row(own, source), first))
            if bits == 0:
                copy_row(moved(scratch, at), source, _FULL)
            else:
                ones = bits if turn >> place & 1 != 0 else np.uint32(0)
                masked_row(moved(scratch, at), source, ~bits, ones)
                place += 1
        lane_operation(op, scratch, _FULL)
        if turn == 0:
            copy_row(before, moved(scratch, result), _FULL)
        equal &= alike_lanes(moved(scratch, result), before, _FULL)
        low &= alike_lanes(moved(scratch, result), before, _LOW)
    shadow = shadow_row(own, moved(registers, result))
    splat_row(shadow, _UNKNOWN, group)
    splat_row(shadow, _UNKNOWN_HIGH, low)
    splat_row(shadow, np.uint32(0), equal)
    return group
