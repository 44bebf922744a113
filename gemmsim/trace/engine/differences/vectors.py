"""Makes vectors of differences, one element for each block, and keeps each distinct vector once."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import micro
from gemmsim.trace import words as executor
from gemmsim.trace.engine.differences import words
from gemmsim.trace.llvm.primitives import (
    alike_lanes,
    any_of_row,
    get_i32,
    get_i64,
    get_n32,
    get_u8,
    get_u16,
    get_u32,
    get_u64,
    lane_operation,
    moved,
    row_of,
    set_i32,
    set_i64,
    set_u8,
    set_u32,
    set_u64,
    sum_row,
)

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_WORD_RANGE = np.int64(1) << 32


@subroutine(ADDRESS, ADDRESS, ADDRESS)
def mixed(key, word):
    """Return `key`, a hash, with one more word taken in."""
    key = (key ^ word) * _MIX
    return key ^ (key >> np.uint64(29))


@subroutine(INDEX, ADDRESS, INDEX)
def key_slot(key, last):
    """Return the slot of a hash table with the last slot `last` at which the search for a key begins."""
    return np.int64(key & np.uint64(last))


@subroutine(ADDRESS, ADDRESS, INDEX)
def vector_at(own, number):
    return moved(get_u64(own, words.VECTORS_AT), 4 * get_i64(own, words.BLOCKS) * number)


@subroutine(INDEX, ADDRESS)
def intern(own):
    """Return the number of the vector that equals the candidate, which stands behind the last vector in use.

    A candidate that is new becomes a vector. Its elements for blocks that are excluded already do not matter, and are
    set to 0. Returns UNKNOWN where there is no room for another vector.
    """
    blocks, used = get_i64(own, words.BLOCKS), get_i64(own, words.USED)
    candidate, excluded = vector_at(own, used), get_u64(own, words.EXCLUDED_AT)
    low, high, bits, key, weight = np.int64(0), np.int64(0), np.uint32(0), np.uint64(blocks), np.uint64(0)
    if get_i64(own, words.EXCLUSIONS) != 0:
        for b in range(blocks):
            kept = np.uint32(get_u8(excluded, b) == 0)
            set_u32(candidate, b, get_u32(candidate, b) * kept)
    # The processor does several steps of this loop at once. It multiplies 32 bits far quicker than 64.
    for b in range(blocks):
        element = get_i32(candidate, b)
        low, high = min(low, element), max(high, element)
        bits |= get_u32(candidate, b)
        weight += _MIX
        key += np.uint64(get_u32(candidate, b)) * (weight >> np.uint64(32))
    if low == 0 and high == 0:
        return np.int64(0)
    table, last = get_u64(own, words.CONTENT_AT), get_i64(own, words.CONTENT_SLOTS) - 1
    slot = key_slot(mixed(key, np.uint64(0)), last)
    while get_i32(table, slot) >= 0:
        other = vector_at(own, get_i32(table, slot))
        same = np.int64(0)
        while same < blocks and alike_lanes(moved(other, 4 * same), moved(candidate, 4 * same), _FULL) == _FULL:
            same += 32  # as many as a row, which is compared at once
        if same >= blocks:
            return get_i32(table, slot)
        slot = (slot + 1) & last
    if used + 2 >= get_i64(own, words.CAPACITY):
        return np.int64(words.UNKNOWN)
    set_i32(table, slot, used)
    set_i64(get_u64(own, words.LOWEST_AT), used, low)
    set_i64(get_u64(own, words.HIGHEST_AT), used, high)
    set_i64(get_u64(own, words.BOUNDED_AT), used, get_i64(own, words.EXCLUSIONS))
    set_u32(get_u64(own, words.BITS_AT), used, bits)
    set_i64(own, words.USED, used + 1)
    return used


@subroutine(INDEX, ADDRESS, INDEX, INDEX)
def subtracted(own, first, second):
    """Return the number of the vector `first` - `second`."""
    blocks, candidate = get_i64(own, words.BLOCKS), vector_at(own, get_i64(own, words.USED))
    for b in range(blocks):
        set_u32(candidate, b, get_u32(vector_at(own, first), b) - get_u32(vector_at(own, second), b))
    return intern(own)


@subroutine(TRUTH, INDEX)
def is_unknown(number):
    """Whether the vector with this number stands for differences that are not followed."""
    return number == words.UNKNOWN or number == words.UNKNOWN_HIGH


@subroutine(NOTHING, ADDRESS, INDEX)
def must_be_zero(own, number):
    """Exclude from the leader's class all blocks whose element of this vector is not 0."""
    same, excluded = get_u64(own, words.SAME_AT), get_u64(own, words.EXCLUDED_AT)
    if get_u8(same, number) == 0:
        set_u8(same, number, 1)
        if is_unknown(number):
            set_i64(own, words.LOST_AT, get_i64(own, words.AT))
        before = get_i64(own, words.EXCLUSIONS)
        for b in range(get_i64(own, words.BLOCKS)):
            if get_i32(vector_at(own, number), b) != 0 and get_u8(excluded, b) == 0:
                set_u8(excluded, b, 1)
                set_i64(own, words.EXCLUSIONS, before + 1)


@subroutine(NOTHING, ADDRESS, INDEX)
def must_be_aligned(own, number):
    """Exclude from the leader's class all blocks whose element of this vector is not a multiple of 128 (bytes)."""
    aligned, excluded = get_u64(own, words.ALIGNED_AT), get_u64(own, words.EXCLUDED_AT)
    if get_u8(aligned, number) == 0:
        set_u8(aligned, number, 1)
        before = get_i64(own, words.EXCLUSIONS)
        for b in range(get_i64(own, words.BLOCKS)):
            if get_i32(vector_at(own, number), b) & 127 != 0 and get_u8(excluded, b) == 0:
                set_u8(excluded, b, 1)
                set_i64(own, words.EXCLUSIONS, before + 1)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX)
def must_stay_a_word(own, number, value):
    """Exclude all blocks in which `value`, an unsigned word, plus the element of this vector is negative or too large.

    The bounds of the vector are first taken over the blocks that are not excluded yet.
    """
    lowest, highest = get_u64(own, words.LOWEST_AT), get_u64(own, words.HIGHEST_AT)
    excluded, vector = get_u64(own, words.EXCLUDED_AT), vector_at(own, number)
    low, high = np.int64(0), np.int64(0)
    before = get_i64(own, words.EXCLUSIONS)
    for b in range(get_i64(own, words.BLOCKS)):
        if get_u8(excluded, b) == 0:
            element = get_i32(vector, b)
            if value + element < 0 or value + element >= _WORD_RANGE:
                set_u8(excluded, b, 1)
                set_i64(own, words.EXCLUSIONS, before + 1)
            else:
                low, high = min(low, element), max(high, element)
    set_i64(lowest, number, low)
    set_i64(highest, number, high)
    set_i64(get_u64(own, words.BOUNDED_AT), number, get_i64(own, words.EXCLUSIONS))


@subroutine(TRUTH, ADDRESS, INDEX)
def bounded_again(own, number):
    """Take the bounds of a vector again where blocks were excluded since; return whether there was need to."""
    at, exclusions = get_u64(own, words.BOUNDED_AT), get_i64(own, words.EXCLUSIONS)
    if is_unknown(number) or get_i64(at, number) == exclusions:
        return False
    excluded, vector = get_u64(own, words.EXCLUDED_AT), vector_at(own, number)
    low, high = np.int64(0), np.int64(0)
    for b in range(get_i64(own, words.BLOCKS)):
        element = get_i32(vector, b) if get_u8(excluded, b) == 0 else np.int64(0)
        low, high = min(low, element), max(high, element)
    set_i64(get_u64(own, words.LOWEST_AT), number, low)
    set_i64(get_u64(own, words.HIGHEST_AT), number, high)
    set_i64(at, number, exclusions)
    return True


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _comes_from_data(own, rule, registers, lane):
    """Whether any source of a micro-operation differs because of words that were loaded."""
    shadow, found = moved(registers, get_i64(own, words.SHADOW_OFFSET)), False
    for i in range(get_i64(rule, words.SOURCES)):
        number = get_i32(shadow, get_i64(rule, words.SOURCE_AT + i) + lane)
        found |= get_u8(get_u64(own, words.DATA_AT), number) != 0
    return found


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, ADDRESS)
def evaluate(own, rule, registers, op, lane, numbers):
    """Execute a micro-operation for one lane in every block; 32 blocks at a time take the places of a warp's lanes.

    numbers  address of int32 [RESULTS], which are set to the vectors of the results

    Where the guard differs by block, results are what the rows hold in blocks for which it does not hold.
    """
    data = _comes_from_data(own, rule, registers, lane)
    budget = words.DATA_LEFT if data else words.EVALUATIONS_LEFT
    left, used = get_i64(own, budget), get_i64(own, words.USED)
    set_i64(own, budget, left - 1)
    if left <= 0:
        for j in range(get_i64(rule, words.RESULTS_COUNT)):
            set_i32(numbers, j, np.int64(words.UNKNOWN))
        return
    blocks, vectors = get_i64(own, words.BLOCKS), get_u64(own, words.VECTORS_AT)
    scratch, outcome = get_u64(own, words.SCRATCH_AT), get_u64(own, words.OUTCOME_AT)
    shadow = moved(registers, get_i64(own, words.SHADOW_OFFSET))
    guard, inverted = get_n32(op, micro.GUARD) + lane, get_u32(op, micro.GUARD_XOR)
    guarded = get_u32(op, micro.FLAGS) & micro.UNGUARDED == 0 and get_i32(shadow, guard) != 0
    results = get_i64(rule, words.RESULTS_COUNT)
    for first in range(0, blocks, 32):
        for i in range(get_i64(rule, words.SOURCES)):
            at = get_i64(rule, words.SOURCE_AT + i)
            vector = moved(vectors, 4 * (blocks * get_i32(shadow, at + lane) + first))
            sum_row(moved(scratch, 4 * at), vector, get_u32(registers, at + lane))
        lane_operation(op, scratch, _FULL)
        for j in range(results):
            at = get_i64(rule, words.RESULT_AT + j)
            out = moved(outcome, 4 * (blocks * j + first))
            sum_row(out, moved(scratch, 4 * at), np.uint32(0))
            if guarded:
                old = moved(vectors, 4 * (blocks * get_i32(shadow, at + lane) + first))
                holds = moved(vectors, 4 * (blocks * get_i32(shadow, guard) + first))
                for b in range(32):
                    # words are added as 64-bit numbers
                    condition = np.uint32(get_u32(registers, guard) + get_u32(holds, b)) ^ inverted
                    if condition >> np.uint32(31) == 0:
                        set_u32(out, b, get_u32(registers, at + lane) + get_u32(old, b))
    for j in range(results):
        out, candidate = moved(outcome, 4 * blocks * j), vector_at(own, get_i64(own, words.USED))
        leader = np.uint32(0) - get_u32(out, 0)
        for first in range(0, blocks, 32):
            sum_row(moved(candidate, 4 * first), moved(out, 4 * first), leader)
        set_i32(numbers, j, intern(own))
    if data:
        for number in range(used, get_i64(own, words.USED)):
            set_u8(get_u64(own, words.DATA_AT), number, 1)


@subroutine(INDEX, ADDRESS, INDEX, ADDRESS)
def _slot_of(keys, slots, key):
    """Return which of the slots from number `slots` on, of which there are as many, has `key`, or the empty one for
    it."""
    slot = slots + key_slot(key, slots - 1)
    while get_u64(keys, slot) != np.uint64(0) and get_u64(keys, slot) != key:
        slot = slots + ((slot + 1) & (slots - 1))
    return slot


@subroutine(NOTHING, ADDRESS)
def _make_room(own):
    """Double the memo's slots; where there are as many as may be, empty it."""
    keys, slots = get_u64(own, words.MEMO_KEYS_AT), get_i64(own, words.MEMO_SLOTS)
    if slots == words.MOST_MEMO_SLOTS:
        set_i64(own, words.MEMO_USED, 0)
        for slot in range(slots, 2 * slots):
            set_u64(keys, slot, np.uint64(0))
        return
    values, size = get_u64(own, words.MEMO_VALUES_AT), 4 * words.RESULTS
    set_i64(own, words.MEMO_SLOTS, 2 * slots)
    for slot in range(slots, 2 * slots):
        key = get_u64(keys, slot)
        if key != np.uint64(0):
            place = _slot_of(keys, 2 * slots, key)
            set_u64(keys, place, key)
            for j in range(words.RESULTS):
                set_i32(moved(values, size * place), j, get_i32(moved(values, size * slot), j))


@subroutine(INDEX, ADDRESS, ADDRESS)
def memo_slot(own, key):
    """Return where the memo, which is less than half full, keeps `key`, or the empty slot where it may be put."""
    if 2 * get_i64(own, words.MEMO_USED) >= get_i64(own, words.MEMO_SLOTS):
        _make_room(own)
    return _slot_of(get_u64(own, words.MEMO_KEYS_AT), get_i64(own, words.MEMO_SLOTS), key)


@subroutine(ADDRESS, ADDRESS, ADDRESS)
def shadow_row(own, row):
    """Return the address of the shadow of a row of registers: int32 [32], a vector's number for each lane."""
    return moved(row, get_i64(own, words.SHADOW_OFFSET))


@subroutine(ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX)
def shadow_of(own, registers, op, column):
    """Return the address of the shadow of the row whose word offset is in that column of a micro-operation."""
    return shadow_row(own, row_of(registers, op, column))


@subroutine(ADDRESS, ADDRESS, ADDRESS)
def _differs_at(own, row):
    """Return the address of what is known of a row of registers, see `words.DIFFERS`."""
    return moved(get_u64(own, words.DIFFERS_AT), np.int64(row - get_u64(own, words.REGISTERS_AT)) >> 7)


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX)
def any_differs(own, registers, number):
    """Whether any row may differ by block that operation `number` of the code, one on lanes, reads or writes."""
    known, n = _differs_at(own, registers), np.int64(0)
    rows = moved(get_u64(own, words.OPERATION_ROWS_AT), 2 * words.OPERATION_ROWS * number)
    while n < get_u16(rows, 0):
        n += 1
        if get_u8(known, get_u16(rows, n)) != 0:
            return True
    return False


@subroutine(NOTHING, ADDRESS, ADDRESS)
def note_row(own, row):
    """Note whether any word of a row of registers differs by block, after its shadow was set."""
    known, differs = _differs_at(own, row), any_of_row(shadow_row(own, row))
    set_u8(known, 0, (get_u8(known, 0) & words.OFTEN) | np.int64(words.DIFFERS if differs else 0))


@subroutine(ADDRESS, ADDRESS)
def tables_of(context):
    return get_u64(context, executor.DIFFERENCES_AT)
