"""Finds the differences of what a micro-operation on lanes is about to write."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro
from gemmsim.trace.engine.differences import words
from gemmsim.trace.engine.differences.halves import relate_halves, unknown_lanes
from gemmsim.trace.engine.differences.vectors import (
    bounded_again,
    evaluate,
    memo_slot,
    mixed,
    note_row,
    shadow_of,
    shadow_row,
)
from gemmsim.trace.llvm.primitives import (
    alike_lanes,
    any_of_row,
    copy_row,
    equal_lanes,
    first_set,
    get_i32,
    get_i64,
    get_u8,
    get_u32,
    get_u64,
    has,
    lane_operation,
    masked_row,
    moved,
    moved_row,
    row_of,
    set_i32,
    set_i64,
    set_u32,
    set_u64,
    splat_row,
)

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)
_UNKNOWN = np.uint32(words.UNKNOWN)
_MOST_CORNERS = 3  # operands that differ, up to which each combination of their least and largest values is tried


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, WORD)
def guard_differs(own, registers, op, active):
    """Return the lanes among `active` for which the guard of a micro-operation differs in some block of the class."""
    if get_u32(op, micro.FLAGS) & micro.UNGUARDED != 0:
        return np.uint32(0)
    guard, lanes = shadow_of(own, registers, op, micro.GUARD), np.uint32(0)
    if not any_of_row(guard):
        return lanes
    for lane in range(32):
        if has(active, lane) and get_u8(get_u64(own, words.SAME_AT), get_i32(guard, lane)) == 0:
            lanes |= np.uint32(1) << np.uint32(lane)
    return lanes


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, WORD)
def _fill(own, rule, registers, differing, corner, lanes):
    """Write the sources to the scratch rows, each at its least or its largest value over all blocks.

    differing  bits for the source rows that differ
    corner     bit i is set where the i-th of these is to have its largest value

    Returns the lanes in which no value leaves the range in which the operation is monotonic.
    """
    scratch, fine, place = get_u64(own, words.SCRATCH_AT), lanes, np.int64(0)
    lowest, highest = get_u64(own, words.LOWEST_AT), get_u64(own, words.HIGHEST_AT)
    for i in range(get_i64(rule, words.SOURCES)):
        at = 4 * get_i64(rule, words.SOURCE_AT + i)
        source, to = moved(registers, at), moved(scratch, at)
        if differing >> i & 1 == 0:
            copy_row(to, source, _FULL)
            continue
        shadow, bounds = shadow_row(own, source), highest if corner >> place & 1 != 0 else lowest
        bits, signed = get_i64(rule, words.LIMIT_BITS + i), get_i64(rule, words.SIGNED) >> i & 1 != 0
        place += 1
        first = get_u32(shadow, first_set(lanes))
        together = equal_lanes(shadow, first)
        if together & lanes == lanes:
            inside = moved_row(to, source, get_i64(bounds, np.int64(first)), signed, bits)
            if bits == 32 or inside & lanes == lanes:
                fine &= inside
                continue
        for lane in range(32):
            value = get_i32(source, lane) if signed else np.int64(get_u32(source, lane))
            # Bits above those that are limited are shifted out. They do not matter as long as they stay what they are.
            above = np.int64(0) if signed else value >> bits
            value += get_i64(bounds, get_i32(shadow, lane))
            from_bottom = value + (np.int64(1) << (bits - 1)) if signed else value - (above << bits)
            if from_bottom < 0 or from_bottom >= np.int64(1) << bits:
                fine &= ~(np.uint32(1) << np.uint32(lane))
            set_u32(to, lane, np.uint32(value & 0xFFFFFFFF))
    return fine


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD)
def _steady(own, rule, registers, op, lanes):
    """Return the lanes whose checked results (`rules`) are the leader's in every block."""
    differing, count = np.int64(0), np.int64(0)
    for i in range(get_i64(rule, words.SOURCES)):
        shadow = shadow_row(own, moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i)))
        if any_of_row(shadow):
            if get_i64(rule, words.EXACT_IF) >> i & 1 != 0:
                lanes &= equal_lanes(shadow, np.uint32(0))
            else:
                differing |= np.int64(1) << i
                count += 1
    if count > _MOST_CORNERS:
        return np.uint32(0)
    scratch, saved = get_u64(own, words.SCRATCH_AT), get_u64(own, words.SAVED_AT)
    _fill(own, rule, registers, np.int64(0), np.int64(0), lanes)
    lane_operation(op, scratch, _FULL)
    checked = get_i64(rule, words.CHECKED)
    for j in range(get_i64(rule, words.RESULTS_COUNT)):
        if checked >> j & 1 != 0:
            copy_row(moved(saved, 128 * j), moved(scratch, 4 * get_i64(rule, words.RESULT_AT + j)), _FULL)
    for corner in range(np.int64(1) << count):
        if lanes == 0:
            return lanes
        lanes &= _fill(own, rule, registers, differing, corner, lanes)
        lane_operation(op, scratch, _FULL)
        for j in range(get_i64(rule, words.RESULTS_COUNT)):
            if checked >> j & 1 != 0:
                found = moved(scratch, 4 * get_i64(rule, words.RESULT_AT + j))
                lanes &= alike_lanes(found, moved(saved, 128 * j), _FULL)
    return lanes


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, WORD)
def _bounded_again(own, rule, registers, lanes):
    """Take the bounds of the sources' vectors again; return whether any may have become narrower."""
    found = False
    for i in range(get_i64(rule, words.SOURCES)):
        shadow = shadow_row(own, moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i)))
        for lane in range(32):
            if has(lanes, lane) and get_i32(shadow, lane) != 0:
                found |= bounded_again(own, get_i32(shadow, lane))
    return found


@subroutine(ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, WORD)
def _key(own, rule, registers, op, lane, exact, varying):
    """Return a hash of all that the differences of the results of one lane depend on.

    exact    1 where they depend on the values of all sources
    varying  lanes for which the guard differs by block: there they depend on the guard and on what the rows hold, too
    """
    key, differing = mixed(np.uint64(1 + 2 * exact), op), np.int64(0)
    guarded = has(varying, lane)
    for i in range(get_i64(rule, words.SOURCES)):
        number = get_i32(shadow_row(own, registers), get_i64(rule, words.SOURCE_AT + i) + lane)
        if number != 0:
            differing |= np.int64(1) << i
        key = mixed(key, np.uint64(number))
    for i in range(get_i64(rule, words.SOURCES)):
        if exact != 0 or guarded or get_i64(rule, words.NEEDS + i) & differing != 0:
            key = mixed(key, np.uint64(get_u32(registers, get_i64(rule, words.SOURCE_AT + i) + lane)))
    if guarded:
        key = mixed(key, np.uint64(get_u32(row_of(registers, op, micro.GUARD), lane)))
        key = mixed(key, np.uint64(get_i32(shadow_of(own, registers, op, micro.GUARD), lane)))
        for j in range(get_i64(rule, words.RESULTS_COUNT)):
            at = get_i64(rule, words.RESULT_AT + j) + lane
            key = mixed(key, np.uint64(get_u32(registers, at)))
            key = mixed(key, np.uint64(get_i32(shadow_row(own, registers), at)))
    return key | np.uint64(1)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD, WORD)
def relate_lanes(own, rule, registers, op, mask, varying):
    """Set the shadows of what a micro-operation on lanes is about to write for the lanes in `mask`.

    rule     see `gemmsim.trace.differences.rules`
    varying  lanes on the warp's path for which the guard differs by block: they have results that differ, too
    """
    written = mask
    if get_u32(op, micro.FLAGS) & micro.UNIFORM != 0:
        written = _FULL if mask != 0 else mask
        varying = _FULL if varying != 0 else varying
    some = False
    for i in range(get_i64(rule, words.SOURCES)):
        some |= any_of_row(shadow_row(own, moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i))))
    if some or varying != 0:
        _relate_differing(own, rule, registers, op, written | varying, varying)
    for j in range(get_i64(rule, words.RESULTS_COUNT)):
        at = moved(registers, 4 * get_i64(rule, words.RESULT_AT + j))
        if not some and varying == 0:
            splat_row(shadow_row(own, at), np.uint32(0), written)
        note_row(own, at)


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD)
def _relate_bits(own, rule, registers, op, lanes):
    """Set the shadow of the result of a bitwise operation where only one source differs, and only in its upper bits.

    There the result often equals that source in these bits, as in `thread | block << 5`, or does not depend on them.
    Which of both holds is seen by setting these bits of the source to zeros and to ones. Returns the lanes that are
    done.
    """
    differing, count, first = np.int64(0), np.int64(0), first_set(lanes)
    for i in range(get_i64(rule, words.SOURCES)):
        if any_of_row(shadow_row(own, moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i)))):
            differing, count = np.int64(i), count + 1
    at = 4 * get_i64(rule, words.SOURCE_AT + differing)
    source = moved(registers, at)
    number = get_u32(shadow_row(own, source), first)
    lanes &= equal_lanes(shadow_row(own, source), number)
    if count != 1 or number == 0:
        return np.uint32(0)
    bits = get_u32(get_u64(own, words.BITS_AT), np.int64(number))
    lower = np.uint32((bits & (np.uint32(0) - bits)) - np.uint32(1))
    scratch, result = get_u64(own, words.SCRATCH_AT), 4 * get_i64(rule, words.RESULT_AT)
    zeros = get_u64(own, words.SAVED_AT)
    ones, constants = moved(zeros, 128), moved(zeros, 256)
    for turn in range(2):
        _fill(own, rule, registers, np.int64(0), np.int64(0), lanes)
        masked_row(moved(scratch, at), source, lower, np.uint32(0) if turn == 0 else ~lower)
        lane_operation(op, scratch, _FULL)
        copy_row(moved(zeros, 128 * turn), moved(scratch, result), _FULL)
    splat_row(constants, np.uint32(0), _FULL)
    equal = alike_lanes(zeros, ones, ~lower) & lanes
    identical = alike_lanes(zeros, constants, ~lower) & lanes
    splat_row(constants, _FULL, _FULL)
    identical &= alike_lanes(ones, constants, ~lower)
    splat_row(shadow_row(own, moved(registers, result)), np.uint32(0), equal)
    splat_row(shadow_row(own, moved(registers, result)), number, identical)
    return equal | identical


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, INDEX, WORD)
def _like_first(own, rule, registers, exact, lanes):
    """Return the lanes whose results have the differences of the first lane in `lanes`.

    exact  1 where the values of all sources matter
    """
    first, differing, same = first_set(lanes), np.int64(0), lanes
    for i in range(get_i64(rule, words.SOURCES)):
        shadow = shadow_row(own, moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i)))
        number = get_u32(shadow, first)
        same &= equal_lanes(shadow, number)
        if number != 0:
            differing |= np.int64(1) << i
    for i in range(get_i64(rule, words.SOURCES)):
        if exact != 0 or get_i64(rule, words.NEEDS + i) & differing != 0:
            source = moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i))
            same &= equal_lanes(source, get_u32(source, first))
    return same


@subroutine(WORD, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD, WORD)
def _unknown(own, rule, registers, op, lanes, varying):
    """Return the lanes of which a source, or a guard that differs, is not known in other blocks."""
    unknown = np.uint32(0)
    for i in range(get_i64(rule, words.SOURCES)):
        at = moved(registers, 4 * get_i64(rule, words.SOURCE_AT + i))
        unknown |= unknown_lanes(shadow_row(own, at))
    if varying != 0:
        unknown |= equal_lanes(shadow_of(own, registers, op, micro.GUARD), _UNKNOWN) & varying
        for j in range(get_i64(rule, words.RESULTS_COUNT)):
            at = moved(registers, 4 * get_i64(rule, words.RESULT_AT + j))
            unknown |= unknown_lanes(shadow_row(own, at)) & varying
    return unknown & lanes


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD, WORD)
def _relate_differing(own, rule, registers, op, lanes, varying):
    """Do what `relate_lanes` does for operands or guards that differ by block."""
    checked = get_i64(rule, words.CHECKED)
    unknown, done = _unknown(own, rule, registers, op, lanes, varying), np.uint32(0)
    if unknown != 0 and varying == 0 and get_i64(rule, words.HALVES) != 0:
        done = relate_halves(own, rule, registers, op, unknown)
    for j in range(get_i64(rule, words.RESULTS_COUNT)):
        at = moved(registers, 4 * get_i64(rule, words.RESULT_AT + j))
        splat_row(shadow_row(own, at), _UNKNOWN, unknown & ~done)
    lanes = lanes & ~unknown
    if lanes == 0:
        return
    steady, rest = lanes & ~varying, lanes
    if get_i64(rule, words.BITWISE) != 0 and varying == 0:
        rest &= ~_relate_bits(own, rule, registers, op, lanes)
    elif checked != 0 and steady != 0:
        wanted, steady = steady, _steady(own, rule, registers, op, steady)
        if steady != wanted and _bounded_again(own, rule, registers, wanted):
            steady = _steady(own, rule, registers, op, wanted)
    keys, values = get_u64(own, words.MEMO_KEYS_AT), get_u64(own, words.MEMO_VALUES_AT)
    while rest != 0:
        lane = first_set(rest)
        exact, group = np.int64(1), rest & ~steady
        if has(steady, lane):
            exact, group = np.int64(0), rest & steady
        group = np.uint32(1) << np.uint32(lane) if varying != 0 else _like_first(own, rule, registers, exact, group)
        key = _key(own, rule, registers, op, lane, exact, varying)
        slot = memo_slot(own, key)
        numbers = moved(values, 4 * words.RESULTS * slot)
        if get_u64(keys, slot) == np.uint64(0):
            evaluate(own, rule, registers, op, lane, numbers)
            if exact == 0:
                for j in range(get_i64(rule, words.RESULTS_COUNT)):
                    if checked >> j & 1 != 0:
                        set_i32(numbers, j, np.int64(0))
            set_u64(keys, slot, key)
            set_i64(own, words.MEMO_USED, get_i64(own, words.MEMO_USED) + 1)
        rest &= ~group
        if get_u32(numbers, 0) == _UNKNOWN and varying == 0 and get_i64(rule, words.HALVES) != 0:
            group &= ~relate_halves(own, rule, registers, op, group)
        for j in range(get_i64(rule, words.RESULTS_COUNT)):
            at = moved(registers, 4 * get_i64(rule, words.RESULT_AT + j))
            splat_row(shadow_row(own, at), get_u32(numbers, j), group)
