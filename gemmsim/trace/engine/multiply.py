"""Multiplies matrices that the lanes of a warp hold together: HMMA, QMMA, IMMA, BMMA and DMMA.

The PTX ISA says which lane holds which element ("Matrix fragments for mma" and "ldmatrix"). With g = lane / 4,
t = lane % 4 and e elements in a register, all shapes with m = 8 or 16 and n = 8 follow one rule. Register r of A holds
row g + 8 (r mod m/8) from column e t + 4 e (r div m/8) on. Register r of B holds column g from row e t + 4 e r on.
Register r of the result holds row g + 8 (r div 2), column 2 t + r mod 2; where it holds halves, row g + 8 r and columns
2 t and 2 t + 1.

Products of floats of up to 16 bits, of TF32 and of integers are exact here as on the tensor cores. Floats are summed as
`cut_sum` says. Integers wrap or saturate exactly. Double precision is a chain of fused multiply-adds in the order of k.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.cut_sum import C_WORDS, add_cut, block_bytes, cut_places
from gemmsim.trace.engine.sparse import elements_shift, put_in_places
from gemmsim.trace.llvm import cut_sums, fragments
from gemmsim.trace.llvm.primitives import copy_row, get_n32, get_u32, moved, population, row_of, scratch, set_i32
from gemmsim.trace.lower.tensor import F64, FORMAT_MASK, FORMAT_SHIFT, HALF, S32, S32_SATURATED, SPARSE_BIT, XOR_BIT
from gemmsim.trace.micro import B1

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)
_FOURTH_SOURCE = micro.SOURCE + 3 * micro.SOURCE_COLUMNS


def multiply_matrix(context, registers, op, mask, warp):
    """Execute a `multiply_matrix`, in which all lanes take part; returns 0 or a fault status.

    context, registers, op  addresses, as `memory_access.access` takes them
    """
    if mask != _FULL:
        return np.int64(words.PARTIAL_WARP)
    if get_n32(op, micro.SECOND_IMMEDIATE) == F64:
        _multiply_double(registers, op)
    elif get_n32(op, micro.DETAIL) & FORMAT_MASK == B1:
        _multiply_bits(registers, op)
    else:
        _multiply(registers, op)
    return np.int64(0)


@subroutine(NOTHING, INDEX, INDEX, ADDRESS, ADDRESS)
def factor(format_, places, to, register):
    """Write the elements of a register of A to the address `to`, in the order of lanes: as terms of sums that are cut,
    where `places` is not 0, or as float64."""
    if places != 0:
        cut_sums.spread_terms(format_, to, register)
    else:
        fragments.spread(format_, to, register)


@subroutine(NOTHING, INDEX, INDEX, ADDRESS, ADDRESS)
def turned_factor(format_, places, to, register):
    """Write a register of B likewise, with the eight columns of each row k side by side."""
    if places != 0:
        cut_sums.turn_terms(format_, to, register)
    else:
        fragments.turn(format_, to, register)


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS)
def load_accumulator(format_, to, rows):
    if format_ >= S32:
        fragments.load_s32(to, rows)
    elif format_ == HALF:
        fragments.load_f16(to, rows)
    else:
        fragments.load_f32(to, rows)


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS)
def store_accumulator(format_, rows, values):
    if format_ == S32_SATURATED:
        fragments.store_saturated(rows, values)
    elif format_ == S32:
        fragments.store_s32(rows, values)
    elif format_ == HALF:
        fragments.store_f16(rows, values)
    else:
        fragments.store_f32(rows, values)


@subroutine(NOTHING, ADDRESS, ADDRESS)
def _multiply(registers, op):
    """Execute a matrix multiply-add of floats of up to 16 bits, TF32 or integers of 4 or 8 bits, for all lanes."""
    detail = get_n32(op, micro.DETAIL)
    format_a, format_b = detail & FORMAT_MASK, (detail >> FORMAT_SHIFT) & FORMAT_MASK
    depth, accumulator = get_n32(op, micro.IMMEDIATE), get_n32(op, micro.SECOND_IMMEDIATE)
    groups = get_n32(op, micro.THIRD_IMMEDIATE) >> 3  # a group is eight rows of A and C
    shift, places, sparse = elements_shift(format_a), cut_places(detail), detail & SPARSE_BIT != 0
    steps = depth >> 2 + shift  # a register holds 1 << shift elements
    held = steps >> 1 if sparse else steps
    register_bytes = (np.int64(256) if places == 0 else block_bytes(format_a)) << shift  # of its elements
    accumulator_bytes = np.int64(128) if accumulator == HALF else np.int64(256)  # of a group
    a, b, c, dense = scratch(16 * 64), scratch(128 * 8), scratch(C_WORDS), scratch(16 * 64)
    words_a, words_b = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.SECOND_SOURCE)
    words_c, result = row_of(registers, op, micro.THIRD_SOURCE), row_of(registers, op, micro.RESULT)
    for register in range(held * groups):
        factor(format_a, places, moved(a, register_bytes * register), moved(words_a, 128 * register))
    for step in range(steps):
        turned_factor(format_b, places, moved(b, register_bytes * step), moved(words_b, 128 * step))
    metadata = scratch(16)  # a copy: the result may be written over them
    if sparse:
        copy_row(metadata, row_of(registers, op, _FOURTH_SOURCE), _FULL)
    for i in range(groups):
        before, after = moved(words_c, accumulator_bytes * i), moved(result, accumulator_bytes * i)
        load_accumulator(accumulator, c, before)
        rows_a, stride = moved(a, register_bytes * i), register_bytes * groups
        if sparse:
            put_in_places(op, metadata, dense, rows_a, i, register_bytes)
            rows_a, stride = dense, register_bytes
        if places != 0:
            add_cut(detail, accumulator, c, rows_a, b, steps, stride)
        elif shift == 2:
            fragments.product_4(c, rows_a, b, steps, stride)
        else:
            fragments.product_8(c, rows_a, b, steps, stride)
        store_accumulator(accumulator, after, c)


@subroutine(NOTHING, ADDRESS, ADDRESS)
def _multiply_bits(registers, op):
    """Execute a matrix multiply-add of bits, which adds to C how many are set in the combined rows and columns."""
    steps, groups = get_n32(op, micro.IMMEDIATE) >> 7, get_n32(op, micro.THIRD_IMMEDIATE) >> 3
    exclusive = get_n32(op, micro.DETAIL) & XOR_BIT != 0
    words_a, words_b = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.SECOND_SOURCE)
    words_c, result = row_of(registers, op, micro.THIRD_SOURCE), row_of(registers, op, micro.RESULT)
    totals = scratch(2 * 64)
    for i in range(groups):
        for row in range(8):
            for column in range(8):
                register = 32 * (2 * i + (column & 1)) + 4 * row + (column >> 1)
                total = get_n32(words_c, register)  # its upper half does not matter: the result wraps around
                for step in range(steps):
                    for t in range(4):
                        left = get_u32(words_a, 32 * (step * groups + i) + 4 * row + t)
                        right = get_u32(words_b, 32 * step + 4 * column + t)
                        total += population(left ^ right if exclusive else left & right)
                set_i32(totals, register, total)
    for register in range(64 * groups):  # the result may be a register of A or B
        set_i32(result, register, get_n32(totals, register))


@subroutine(NOTHING, ADDRESS, ADDRESS)
def _multiply_double(registers, op):
    """Execute a matrix multiply-add in double precision, for all lanes."""
    steps, groups = get_n32(op, micro.IMMEDIATE) >> 2, get_n32(op, micro.THIRD_IMMEDIATE) >> 3
    words_a, words_b = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.SECOND_SOURCE)
    words_c, result = row_of(registers, op, micro.THIRD_SOURCE), row_of(registers, op, micro.RESULT)
    a, b, c = scratch(8 * 32), scratch(4 * 32), scratch(8 * 8)
    for register in range(steps * groups):
        fragments.spread_f64(moved(a, 256 * register), moved(words_a, 256 * register))
    for step in range(steps):
        fragments.turn_f64(moved(b, 256 * step), moved(words_b, 256 * step))
    for i in range(groups):
        fragments.load_f64(c, moved(words_c, 512 * i))
        fragments.product_1(c, moved(a, 256 * i), b, steps, 256 * groups)
        fragments.store_f64(moved(result, 512 * i), c)
