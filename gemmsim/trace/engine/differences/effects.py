"""Notes which differences would change what a warp does: branches, barriers, exchanges between lanes."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro
from gemmsim.trace import words as executor
from gemmsim.trace.engine.differences import words
from gemmsim.trace.engine.differences.lane_differences import guard_differs, relate_lanes
from gemmsim.trace.engine.differences.vectors import any_differs, must_be_zero, note_row, shadow_of, tables_of
from gemmsim.trace.llvm.primitives import (
    any_of_row,
    call_part,
    copy_row,
    equal_lanes,
    first_set,
    get_i32,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    has,
    moved,
    row_of,
    set_i32,
    set_i64,
    splat_row,
)
from gemmsim.trace.lower.context import CONTROL_NUMBER, OP_NUMBER
from gemmsim.trace.lower.tensor import F64, HALF

# mypy: disable-error-code="no-untyped-def"

_LANE_OPERATIONS = len(OP_NUMBER)
_FULL = np.uint32(0xFFFFFFFF)
_NOP, _BARRIER, _OUTCOME = (CONTROL_NUMBER[n] for n in ("nop", "barrier", "barrier_outcome"))
_BEGIN, _EXCHANGE, _MBARRIER = (CONTROL_NUMBER[n] for n in ("begin", "exchange", "mbarrier"))
_MOVE_MATRIX, _MULTIPLY = (CONTROL_NUMBER[n] for n in ("move_matrix", "multiply_matrix"))
_MULTIPLY_WARPGROUP = CONTROL_NUMBER["multiply_warpgroup"]
_COPY_IN_BULK = CONTROL_NUMBER["copy_in_bulk"]
_BRANCH, _DIVERGENT, _JUMP = (CONTROL_NUMBER[n] for n in ("branch", "branch_divergent", "jump"))
_LEAVING, _WARPSYNC = (CONTROL_NUMBER[n] for n in ("leave", "warpsync"))
_FRAGMENT_ROWS = 8  # of a factor, at most
_LAST_SHUFFLE = max(micro.SHUFFLES.values())


@subroutine(NOTHING, ADDRESS, ADDRESS, WORD)
def same_for_all(own, shadow, lanes):
    """Note that the word of a row in these lanes must be the leader's in every block of its class.

    shadow  address of the row's shadow
    """
    if any_of_row(shadow):
        for lane in range(32):
            if has(lanes, lane) and get_i32(shadow, lane) != 0:
                must_be_zero(own, get_i32(shadow, lane))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD)
def _count_threads(own, registers, op, varying):
    """Note for how many threads the guard of an instruction differs, by vector; returns 0 or UNRELATED."""
    table, guard = get_u64(own, words.THREADS_AT), shadow_of(own, registers, op, micro.GUARD)
    inverted, instruction = get_u32(op, micro.GUARD_XOR) & np.uint32(1), get_n32(op, micro.INSTRUCTION)
    for lane in range(32):
        if not has(varying, lane):
            continue
        vector, used, found = get_i32(guard, lane), get_i64(own, words.THREADS_USED), np.int64(0)
        row = table
        while found < used:
            row = moved(table, 32 * found)
            same = get_i64(row, words.THREAD_INSTRUCTION) == instruction
            if same and get_i64(row, words.THREAD_VECTOR) == vector:
                break
            found += 1
        if found == words.MAX_THREAD_ROWS:
            return np.int64(executor.UNRELATED)
        if found == used:
            row = moved(table, 32 * found)
            set_i64(own, words.THREADS_USED, used + 1)
            set_i64(row, words.THREAD_INSTRUCTION, instruction)
            set_i64(row, words.THREAD_VECTOR, vector)
            set_i64(row, words.THREAD_INVERTED, np.int64(inverted))
            set_i64(row, words.THREAD_COUNT, 0)
        set_i64(row, words.THREAD_COUNT, get_i64(row, words.THREAD_COUNT) + 1)
    return np.int64(0)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD)
def _relate_exchange(own, registers, op, mask):
    """Set the shadows of what an exchange writes: a shuffle moves them as it moves words. Votes must not differ."""
    kind = get_n32(op, micro.DETAIL)
    source, result = shadow_of(own, registers, op, micro.SOURCE), shadow_of(own, registers, op, micro.RESULT)
    written = _FULL if get_u32(op, micro.FLAGS) & micro.UNIFORM else mask
    if kind <= _LAST_SHUFFLE:
        same_for_all(own, shadow_of(own, registers, op, micro.SECOND_SOURCE), mask)
        same_for_all(own, shadow_of(own, registers, op, micro.THIRD_SOURCE), mask)
        scratch = get_u64(own, words.SCRATCH_AT)
        for column in (micro.SECOND_SOURCE, micro.THIRD_SOURCE):
            copy_row(row_of(scratch, op, column), row_of(registers, op, column), _FULL)
        copy_row(row_of(scratch, op, micro.SOURCE), source, _FULL)
        call_part(np.uint64(0), scratch, op, mask, np.int64(0))
        copy_row(result, row_of(scratch, op, micro.RESULT), mask)
        splat_row(shadow_of(own, registers, op, micro.SECOND_RESULT), np.uint32(0), mask)
        return
    if kind == micro.FIRST_LANE:
        number = get_u32(source, first_set(mask))
        if equal_lanes(source, number) & mask != mask:  # whether all lanes agree may differ, too
            same_for_all(own, source, mask)
        if number != 0 and get_u32(op, micro.SOURCE_FLIP) != 0:
            number = np.uint32(words.UNKNOWN)
        splat_row(result, number, written)
        splat_row(shadow_of(own, registers, op, micro.SECOND_RESULT), np.uint32(0), written)
        return
    if kind == micro.TRANSPOSE:
        splat_row(result, np.uint32(words.UNKNOWN) if any_of_row(source) else np.uint32(0), written)
        return
    same_for_all(own, source, mask)
    splat_row(result, np.uint32(0), written)
    splat_row(shadow_of(own, registers, op, micro.SECOND_RESULT), np.uint32(0), written)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS)
def _relate_matrix(own, registers, op):
    """Set the shadows of a product of matrices: where any factor may differ, the product is not known."""
    number = np.uint32(0)
    for source in range(3):
        shadow = shadow_of(own, registers, op, micro.SOURCE + micro.SOURCE_COLUMNS * source)
        for row in range(_FRAGMENT_ROWS):
            if any_of_row(moved(shadow, 128 * row)):
                number = np.uint32(words.UNKNOWN)
    wide = 2 if get_u32(op, micro.SECOND_IMMEDIATE) == np.uint32(F64) else 1
    for row in range(2 * (get_n32(op, micro.THIRD_IMMEDIATE) >> 3) * wide):
        splat_row(moved(shadow_of(own, registers, op, micro.RESULT), 128 * row), number, _FULL)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS)
def _relate_warpgroup(own, registers, op):
    """Set the shadows of a warpgroup's product: where registers, descriptors or anything in shared memory may differ,
    it is not known."""
    wide = 2 if get_u32(op, micro.SECOND_IMMEDIATE) == np.uint32(HALF) else 4
    rows = wide * (get_n32(op, micro.THIRD_IMMEDIATE) >> 3)
    different = get_i64(own, words.DIFFERENT) != 0
    for source, count in ((0, 4), (1, 2), (2, rows), (3, 1)):
        shadow = shadow_of(own, registers, op, micro.SOURCE + micro.SOURCE_COLUMNS * source)
        for row in range(count):
            different = different or any_of_row(moved(shadow, 128 * row))
    for row in range(rows):
        shadow = moved(shadow_of(own, registers, op, micro.RESULT), 128 * row)
        splat_row(shadow, np.uint32(words.UNKNOWN) if different else np.uint32(0), _FULL)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS)
def _relate_matrix_move(context, own, registers, op):
    """Set the shadows of what a matrix load or store writes: where anything in shared memory differs, it is unknown."""
    how, rows = get_n32(op, micro.ACCESS), get_n32(op, micro.DETAIL) & 7
    moves, loads = how & micro.UNMOVED_BIT == 0, how >> micro.KIND_SHIFT == micro.LOAD
    base = get_i64(context, executor.SHARED_BASE)
    different = get_i64(own, words.DIFFERENT) != 0
    if loads:
        number = np.uint32(words.UNKNOWN) if moves and different else np.uint32(0)
        for row in range(rows):
            splat_row(moved(shadow_of(own, registers, op, micro.RESULT), 128 * row), number, _FULL)
        return
    for row in range(rows):
        if any_of_row(moved(shadow_of(own, registers, op, micro.SECOND_SOURCE), 128 * row)):
            different = True
    if moves and different:
        set_i64(own, words.DIFFERENT, 1)
        for lane in range(8 * rows):  # each of these lanes has the address of a row of 16 bytes
            at = moved(get_u64(own, words.SHARED_AT), get_n32(row_of(registers, op, micro.SOURCE), lane) - base)
            for word in range(4):
                set_i32(at, word, np.int64(words.UNKNOWN))


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD)
def _relate_mbarrier(own, registers, op, mask):
    """Note that all that an operation on mbarriers reads must not differ; then its results do not differ."""
    for column in (micro.SOURCE, micro.SECOND_SOURCE, micro.THIRD_SOURCE):
        same_for_all(own, shadow_of(own, registers, op, column), mask)
    for word in range(2 if get_n32(op, micro.DETAIL) == micro.ARRIVE_AT else 1):
        splat_row(moved(shadow_of(own, registers, op, micro.RESULT), 128 * word), np.uint32(0), mask)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD)
def _relate_bulk_copy(own, registers, op, mask):
    """Note what must not differ for a bulk copy to be the same but for its data and the coordinates of its tile.

    Returns UNRELATED where a load's data matter, as they are not followed; else 0.
    """
    for column in (micro.SOURCE, micro.THIRD_SOURCE, micro.FOURTH_SOURCE):
        same_for_all(own, shadow_of(own, registers, op, column), mask)
    if get_n32(op, micro.DETAIL) >> micro.RANK_SHIFT & 7 != 0:  # the address of a run may differ, that of a map not
        same_for_all(own, shadow_of(own, registers, op, micro.SECOND_SOURCE), mask)
    same_for_all(own, moved(shadow_of(own, registers, op, micro.SECOND_SOURCE), 128), mask)
    loads = get_n32(op, micro.DETAIL) & micro.DIRECTION_MASK == micro.COPY_LOAD
    moves = get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT == 0
    return np.int64(executor.UNRELATED if loads and moves else 0)


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, WORD)
def _same_lanes(own, registers, op, active):
    """Whether the guard is the same for all lanes: then it is one of the whole block, and not of threads at an edge."""
    values, numbers = row_of(registers, op, micro.GUARD), shadow_of(own, registers, op, micro.GUARD)
    first = first_set(active)
    same = equal_lanes(values, get_u32(values, first)) & equal_lanes(numbers, get_u32(numbers, first))
    return same & active == active


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, WORD)
def relate(context, registers, op, active, mask):
    """Follow the differences through a micro-operation that is not an access to memory; call it before it is executed.

    Returns 0, or UNRELATED where they are not known any more.
    """
    kind, own = get_n32(op, micro.OP), tables_of(context)
    number = np.int64(op - get_u64(context, executor.CODE_AT)) // (4 * micro.COLUMNS)
    if kind < _LANE_OPERATIONS and not any_differs(own, registers, number):
        return np.int64(0)
    set_i64(own, words.AT, np.int64(op))
    varying, status = guard_differs(own, registers, op, active), np.int64(0)
    guard = shadow_of(own, registers, op, micro.GUARD)
    if varying != 0 and kind <= _NOP and equal_lanes(guard, np.uint32(words.UNKNOWN)) & varying != 0:
        set_i64(own, words.DATA_DECIDES, 1)
        same_for_all(own, guard, varying & ~equal_lanes(guard, np.uint32(words.UNKNOWN)))
    elif varying != 0 and (kind > _NOP or not _same_lanes(own, registers, op, active)):
        same_for_all(own, guard, active)
    elif varying != 0 and get_u32(op, micro.FLAGS) & micro.FIRST != 0:
        status = _count_threads(own, registers, op, varying)
    if status != 0 or kind == _NOP:
        return status
    if kind < _LANE_OPERATIONS:
        rule = moved(get_u64(own, words.RULES_AT), 8 * words.RULE_WORDS * number)
        # What must not differ for `same_for_all` is no longer among what does.
        varying = guard_differs(own, registers, op, active) if varying != 0 else varying
        relate_lanes(own, rule, registers, op, mask, varying)
        return status
    if mask == 0:
        return status
    source = shadow_of(own, registers, op, micro.SOURCE)
    if kind in (_BRANCH, _DIVERGENT, _JUMP, _LEAVING, _WARPSYNC):
        same_for_all(own, source, mask)
    elif kind == _BARRIER:
        same_for_all(own, source, mask)
        same_for_all(own, shadow_of(own, registers, op, micro.SECOND_SOURCE), mask)
        same_for_all(own, shadow_of(own, registers, op, micro.THIRD_SOURCE), mask)
    elif kind == _OUTCOME:
        splat_row(shadow_of(own, registers, op, micro.RESULT), np.uint32(0), mask)
        splat_row(shadow_of(own, registers, op, micro.SECOND_RESULT), np.uint32(0), mask)
    elif kind == _BEGIN:
        splat_row(shadow_of(own, registers, op, micro.RESULT), np.uint32(0), active)
    elif kind == _COPY_IN_BULK:
        status = _relate_bulk_copy(own, registers, op, mask)
    elif kind == _MBARRIER:
        _relate_mbarrier(own, registers, op, mask)
    elif kind == _EXCHANGE:
        _relate_exchange(own, registers, op, mask)
        note_row(own, row_of(registers, op, micro.RESULT))
    elif kind == _MULTIPLY:
        _relate_matrix(own, registers, op)
    elif kind == _MULTIPLY_WARPGROUP:
        _relate_warpgroup(own, registers, op)
    elif kind == _MOVE_MATRIX:
        same_for_all(own, source, mask)
        _relate_matrix_move(context, own, registers, op)
    return status
