"""Multiplies matrices that the lanes of a warp hold together: HMMA, QMMA, IMMA, BMMA and DMMA.

The PTX ISA says which lane holds which element ("Matrix fragments for mma" and "ldmatrix"). With g = lane / 4,
t = lane % 4 and e elements in a register, all shapes with m = 8 or 16 and n = 8 follow one rule. Register r of A holds
row g + 8 (r mod m/8) from column e t + 4 e (r div m/8) on. Register r of B holds column g from row e t + 4 e r on.
Register r of the result holds row g + 8 (r div 2), column 2 t + r mod 2; where it holds halves, row g + 8 r and columns
2 t and 2 t + 1.

Products of floats of up to 16 bits, TF32 and integers are exact here as on the tensor cores, and so is their sum to
within float64; it is rounded once, to nearest, for each instruction. Tensor cores align the terms to the largest one
and cut them off, a few at a time (Fasi et al., PeerJ CS 7:e330, 2021), so single precision results may differ in the
last bits. Integers wrap or saturate exactly. Double precision is a chain of fused multiply-adds in the order of k.

A sparse A holds, of each chunk of four columns, two (PTX ISA, "Sparse matrix storage"). Its registers are those of a
matrix half as wide. Metadata take four bits of each chunk, the places of its two elements. Of each four lanes one, two
or all hold metadata, which the selector names; they hold the chunks in order. Where elements have 16 bits or more, a
lane describes four chunks of row g in the low half of its word, and of row g + 8 in the high half. Where they have
fewer, a lane describes eight chunks of one row: of row g where it is even, of row g + 8 where it is odd. A place of
four-bit integers is that of two neighbours in a chunk of eight. A chunk of TF32 has two columns, of which one is held;
a place is that of half a number. The code that compilers make of fp8's sparse form on sm_90 moves metadata so.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import micro
from gemmsim.trace.llvm import fragments
from gemmsim.trace.llvm.primitives import copy_row, get_n32, get_u32, moved, population, row_of, scratch, set_i32
from gemmsim.trace.lower.tensor import (
    B1,
    BF16,
    E4M3,
    E5M2,
    F16,
    F64,
    FORMAT_MASK,
    FORMAT_SHIFT,
    HALF,
    S4,
    S8,
    S32,
    S32_SATURATED,
    SELECTOR_SHIFT,
    SPARSE_BIT,
    TF32,
    U8,
    XOR_BIT,
)

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)
_FOURTH_SOURCE = micro.SOURCE + 3 * micro.SOURCE_COLUMNS


@subroutine(NOTHING, ADDRESS, ADDRESS)
def multiply_matrix(registers, op):
    """Execute a `multiply_matrix` for all lanes.

    registers, op  address of the warp's rows (`gemmsim.trace.micro`), and address of the micro-operation
    """
    if get_n32(op, micro.SECOND_IMMEDIATE) == F64:
        _multiply_double(registers, op)
    elif get_n32(op, micro.DETAIL) & FORMAT_MASK == B1:
        _multiply_bits(registers, op)
    else:
        _multiply(registers, op)


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS)
def _spread(format_, to, register):
    """Write the elements of a register of A as float64 to the address `to`, in the order of lanes."""
    if format_ == F16:
        fragments.spread_f16(to, register)
    elif format_ == BF16:
        fragments.spread_bf16(to, register)
    elif format_ == TF32:
        fragments.spread_tf32(to, register)
    elif format_ == S8:
        fragments.spread_s8(to, register)
    elif format_ == U8:
        fragments.spread_u8(to, register)
    elif format_ == E4M3:
        fragments.spread_e4m3(to, register)
    elif format_ == E5M2:
        fragments.spread_e5m2(to, register)
    elif format_ == S4:
        fragments.spread_s4(to, register)
    else:
        fragments.spread_u4(to, register)


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS)
def _turn(format_, to, register):
    """Write the elements of a register of B as float64 to the address `to`, with the eight columns of each row k side
    by side."""
    if format_ == F16:
        fragments.turn_f16(to, register)
    elif format_ == BF16:
        fragments.turn_bf16(to, register)
    elif format_ == TF32:
        fragments.turn_tf32(to, register)
    elif format_ == S8:
        fragments.turn_s8(to, register)
    elif format_ == U8:
        fragments.turn_u8(to, register)
    elif format_ == E4M3:
        fragments.turn_e4m3(to, register)
    elif format_ == E5M2:
        fragments.turn_e5m2(to, register)
    elif format_ == S4:
        fragments.turn_s4(to, register)
    else:
        fragments.turn_u4(to, register)


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS)
def _load_accumulator(format_, to, rows):
    if format_ >= S32:
        fragments.load_s32(to, rows)
    elif format_ == HALF:
        fragments.load_f16(to, rows)
    else:
        fragments.load_f32(to, rows)


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS)
def _store_accumulator(format_, rows, values):
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
    shift = 0 if format_a == TF32 else 1 if format_a <= BF16 else 2 if format_a < S4 else 3
    steps = depth >> 2 + shift  # a register holds 1 << shift elements
    held = steps >> 1 if detail & SPARSE_BIT != 0 else steps
    register_bytes = np.int64(256) << shift  # bytes that a register's elements take as float64
    accumulator_bytes = np.int64(128) if accumulator == HALF else np.int64(256)  # of a group
    a, b, c = scratch(16 * 64), scratch(128 * 8), scratch(8 * 8)
    words_a, words_b = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.SECOND_SOURCE)
    words_c, result = row_of(registers, op, micro.THIRD_SOURCE), row_of(registers, op, micro.RESULT)
    for register in range(held * groups):
        _spread(format_a, moved(a, register_bytes * register), moved(words_a, 128 * register))
    for step in range(steps):
        _turn(format_b, moved(b, register_bytes * step), moved(words_b, 128 * step))
    metadata = scratch(16)  # a copy: the result may be written over them
    if detail & SPARSE_BIT != 0:
        copy_row(metadata, row_of(registers, op, _FOURTH_SOURCE), _FULL)
    for i in range(groups):
        before, after = moved(words_c, accumulator_bytes * i), moved(result, accumulator_bytes * i)
        _load_accumulator(accumulator, c, before)
        rows_a, stride = moved(a, register_bytes * i), register_bytes * groups
        if detail & SPARSE_BIT != 0:
            _sparse_product(op, metadata, c, rows_a, b, i)
        elif shift == 0:
            fragments.product_1(c, rows_a, b, steps, stride)
        elif shift == 1:
            fragments.product_2(c, rows_a, b, steps, stride)
        elif shift == 2:
            fragments.product_4(c, rows_a, b, steps, stride)
        else:
            fragments.product_8(c, rows_a, b, steps, stride)
        _store_accumulator(accumulator, after, c)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _sparse_product(op, metadata, c, a, b, group):
    """Add eight rows of a sparse A times B to eight rows of C, in the order of k.

    metadata  address of the 32 lanes' words
    c, a, b   addresses of float64, as `_multiply` has spread them; a is the address of the group's first register
    group     number of these eight rows: 0 for rows 0 to 7, 1 for rows 8 to 15
    """
    detail, depth = get_n32(op, micro.DETAIL), get_n32(op, micro.IMMEDIATE)
    format_a, selector = detail & FORMAT_MASK, detail >> SELECTOR_SHIFT
    shift = 0 if format_a == TF32 else 1 if format_a <= BF16 else 2 if format_a < S4 else 3
    stride = np.int64(512) << shift  # bytes from one register of the group to its next: those of both groups alternate
    chunk_shift = 1 if format_a == TF32 else 3 if format_a >= S4 else 2
    lanes = (depth >> chunk_shift) >> 2  # lanes of four that hold metadata: each holds eight chunks
    within = (1 << shift) - 1
    for row in range(8):
        for k in range(depth >> 1):  # number of the element among those that A holds
            chunk = k >> (chunk_shift - 1)
            if format_a >= S8:
                lane, field = 2 * (chunk >> 3) + group, chunk & 7
            else:
                lane, field = chunk >> 2, 4 * group + (chunk & 3)
            places = (get_n32(metadata, 4 * row + selector * lanes + lane) >> 4 * field) & 15
            if format_a == TF32:
                column = 2 * chunk + ((places >> 1) & 1)
            elif format_a >= S4:
                column = 8 * chunk + 2 * ((places >> (k & 2)) & 3) + (k & 1)
            else:
                column = 4 * chunk + ((places >> (2 * (k & 1))) & 3)
            left = moved(a, stride * (k >> 2 + shift) + 256 * (k & within) + 8 * (4 * row + ((k >> shift) & 3)))
            right = moved(b, 64 * (4 * (column & within) + ((column >> shift) & 3)))
            fragments.add_scaled(
                moved(c, 64 * row), left, moved(right, (np.int64(256) << shift) * (column >> 2 + shift))
            )


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
