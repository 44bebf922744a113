"""Follows differences through bulk copies: by which vector the sectors move that a copy reads or writes."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro
from gemmsim.trace.engine import copy_plans, plan_words
from gemmsim.trace.engine.differences import words
from gemmsim.trace.engine.differences.accesses import note_movers
from gemmsim.trace.engine.differences.vectors import (
    intern,
    is_unknown,
    must_be_aligned,
    must_be_zero,
    must_stay_a_word,
    shadow_of,
    tables_of,
    vector_at,
)
from gemmsim.trace.llvm.primitives import (
    first_set,
    get_i32,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    moved,
    row_of,
    scratch,
    set_i64,
    set_u32,
)

# mypy: disable-error-code="no-untyped-def"

_WORD = np.int64(1) << 31
_RANKS = 5
# What of a dimension says by which vector a tile moves, if blocks differ in its coordinate
_OF_DIMENSION = (plan_words.PLACE, plan_words.SIZE, plan_words.STRIDE, plan_words.BOX, plan_words.STEP)
_RANK, _MOVER, _FIRST, _EACH = 0, 1, 2, 1 + len(_OF_DIMENSION)  # words of a copy that is remembered


@subroutine(TRUTH, ADDRESS, INDEX, INDEX)
def _cut_alike(plan, d, difference):
    """Whether as much of the tile is beyond the array along dimension `d` where it begins `difference` elements on."""
    place, step = get_i64(plan, plan_words.PLACE + d), get_i64(plan, plan_words.STEP + d)
    size, box = get_i64(plan, plan_words.SIZE + d), get_i64(plan, plan_words.BOX + d)
    other = place + difference
    low, its_low = max(np.int64(0), (step - 1 - place) // step), max(np.int64(0), (step - 1 - other) // step)
    high, its_high = (size - place + step - 1) // step, (size - other + step - 1) // step
    return low == its_low and min(box, max(high, np.int64(0))) == min(box, max(its_high, np.int64(0)))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _tile_mover(own, plan, numbers, rank):
    """Return the vector by which the addresses of a tile move. Blocks whose tile has another shape leave the class.

    numbers  address of int64 [rank], the vector of each coordinate
    """
    number = np.int64(0)
    for turn in range(2):  # first a vector that tells which blocks differ in more than the place of the tile
        candidate = vector_at(own, get_i64(own, words.USED))
        for b in range(get_i64(own, words.BLOCKS)):
            total, cut = np.int64(0), np.int64(0)
            for d in range(rank):
                difference = np.int64(get_i32(vector_at(own, get_i64(numbers, d)), b))
                cut += np.int64(0 if _cut_alike(plan, np.int64(d), difference) else 1)
                total += difference * get_i64(plan, plan_words.STRIDE + d)
            alike = cut == 0 and total < _WORD and total >= -_WORD
            value = np.uint32(total & 0xFFFFFFFF) if turn != 0 else np.uint32(0 if alike else 1)
            set_u32(candidate, b, value)
        number = intern(own)
        if turn == 0 and number != 0:
            must_be_zero(own, number)
    return number


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _like_the_last(last, plan, numbers, rank):
    """Whether a tile moves as the last one did that was copied by the same micro-operation."""
    same = get_i64(last, _RANK) == rank
    for d in range(rank):
        of_dimension = moved(last, 8 * (_FIRST + _EACH * d))
        number = get_i64(numbers, d)
        same = same and get_i64(of_dimension, 0) == number
        for place, word in enumerate(_OF_DIMENSION):
            same = same and (number == 0 or get_i64(of_dimension, 1 + place) == get_i64(plan, word + d))
    return same


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _mover(own, op, plan, numbers, rank):
    """Return what `_tile_mover` does, which looks at every block, and remember it."""
    slot = np.int64(op >> np.uint64(7)) & (words.COPY_SLOTS - 1)
    last = moved(get_u64(own, words.COPIES_AT), 8 * words.COPY_WORDS * slot)
    if not _like_the_last(last, plan, numbers, rank):
        set_i64(last, _MOVER, _tile_mover(own, plan, numbers, rank))
        set_i64(last, _RANK, rank)
        for d in range(rank):
            of_dimension = moved(last, 8 * (_FIRST + _EACH * d))
            set_i64(of_dimension, 0, get_i64(numbers, d))
            for place, word in enumerate(_OF_DIMENSION):
                set_i64(of_dimension, 1 + place, get_i64(plan, word + d))
    return get_i64(last, _MOVER)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def relate_copy(context, registers, op, mask, first_record):
    """Note the vector by which the records of a bulk copy move; call it after the copy was executed.

    first_record  number of the first record that it left
    """
    own, lane, plan = tables_of(context), first_set(mask), scratch(plan_words.PLAN_WORDS)
    rank, number = get_n32(op, micro.DETAIL) >> micro.RANK_SHIFT & 7, np.int64(0)
    if rank == 0:
        shadow = shadow_of(own, registers, op, micro.SECOND_SOURCE)
        number = np.int64(get_i32(shadow, lane))
        if number != 0:
            low = get_u32(row_of(registers, op, micro.SECOND_SOURCE), lane)
            must_stay_a_word(own, number, np.int64(low))
    elif copy_plans.make_plan(context, registers, op, plan, lane) == 0:
        numbers, some = scratch(_RANKS), np.int64(0)
        for d in range(rank):
            one = np.int64(get_i32(moved(shadow_of(own, registers, op, micro.FIFTH_SOURCE), 128 * d), lane))
            set_i64(numbers, d, one)
            some |= one
            if is_unknown(one):
                must_be_zero(own, one)
        if some != 0:
            number = _mover(own, op, plan, numbers, rank)
    if number != 0:
        must_be_aligned(own, number)
    note_movers(context, first_record, number)
