"""Executes matrix instructions, for all lanes of a warp together: ldmatrix (LDSM), multiply-add (HMMA, IMMA, DMMA).

The PTX ISA says which lane holds which element ("Matrix fragments for mma" and "ldmatrix"). With g = lane / 4,
t = lane % 4 and e elements in a register, all shapes with m = 8 or 16 and n = 8 follow one rule. Register r of A holds
row g + 8 (r mod m/8) from column e t + 4 e (r div m/8) on. Register r of B holds column g from row e t + 4 e r on.
Register r of the result holds row g + 8 (r div 2), column 2 t + r mod 2.

Products of 16-bit floats, TF32 and 8-bit integers are exact here as on the tensor cores, and so is their sum to within
float64; it is rounded once, to nearest, for each instruction. Tensor cores align the terms to the largest one and cut
them off, a few at a time (Fasi et al., PeerJ CS 7:e330, 2021), so single precision results may differ in the last bits.
Integers wrap or saturate exactly. Double precision is a chain of fused multiply-adds in the order of k.
"""

from __future__ import annotations

import numpy as np

from gemmsim.isa.matrix import MATRIX_ROW_BYTES
from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.memory_access import blame, record
from gemmsim.trace.llvm import fragments
from gemmsim.trace.llvm.primitives import (
    get_n32,
    get_u16,
    get_u32,
    get_u64,
    lane_address,
    moved,
    row_of,
    scratch,
    set_u32,
)
from gemmsim.trace.lower.tensor import BF16, F16, F64, S8, S32, S32_SATURATED, TF32

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, TRUTH)
def execute_matrix(context, registers, op, warp, loads):
    """Execute a `load_matrix` (where `loads`) or a `multiply_matrix`, in which all lanes take part.

    context, registers, op  addresses, as `memory_access.access` takes them

    Returns 0 or a fault status.
    """
    if loads:
        return _load_matrix(context, registers, op, warp)
    if get_n32(op, micro.SECOND_IMMEDIATE) == F64:
        _multiply_double(registers, op)
    else:
        _multiply(registers, op)
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _load_matrix(context, registers, op, warp):
    """Load 8 x 8 matrices, for each of which eight lanes hold the addresses of its rows; returns 0 or a fault status.

    Element (r, c) goes to lane 4 r + c / 2, or, where the matrix is transposed, to lane 4 c + r / 2.
    """
    detail = get_n32(op, micro.DETAIL)
    matrices, transposed = detail & 7, detail >> 3
    addresses, result = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.RESULT)
    asked = np.uint32(_FULL >> np.uint32(32 - 8 * matrices))
    shape = record(context, addresses, asked, op, warp)
    limit = get_u64(context, words.SHARED_BYTES)
    last = lane_address(addresses, 0) - get_u64(shape, 0) + get_u64(shape, words.PATTERN_HIGH)
    if moved(last, MATRIX_ROW_BYTES) > limit or get_u64(shape, words.PATTERN_ALIGNMENT) & np.uint64(15) != np.uint64(0):
        return blame(context, addresses, asked, np.int64(MATRIX_ROW_BYTES), limit, np.int64(words.SHARED_RANGE))
    if get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT != 0:
        return np.int64(0)
    shared = get_u64(context, words.SHARED_AT)
    for matrix in range(matrices):
        for lane in range(32):
            high, low = lane >> 2, lane & 3
            if transposed != 0:
                first = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low))
                second = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low + 1))
                word = np.uint32(get_u16(first, high)) | np.uint32(get_u16(second, high)) << np.uint32(16)
            else:
                word = get_u32(shared + np.uint64(get_u32(addresses, 8 * matrix + high)), low)
            set_u32(result, matrix * 32 + lane, word)
    return np.int64(0)


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
    else:
        fragments.spread_u8(to, register)


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
    else:
        fragments.turn_u8(to, register)


@subroutine(NOTHING, ADDRESS, ADDRESS)
def _multiply(registers, op):
    """Execute a matrix multiply-add of 16-bit floats, TF32 or 8-bit integers, for all lanes."""
    detail = get_n32(op, micro.DETAIL)
    format_a, format_b = detail & 15, detail >> 4
    depth, accumulator = get_n32(op, micro.IMMEDIATE), get_n32(op, micro.SECOND_IMMEDIATE)
    groups = get_n32(op, micro.THIRD_IMMEDIATE) >> 3  # a group is eight rows of A and C
    shift = 0 if format_a == TF32 else 1 if format_a <= BF16 else 2  # a register holds 1 << shift elements
    steps = depth >> 2 + shift
    register_bytes = np.int64(256) << shift  # bytes that a register's elements take as float64
    a, b, c = scratch(16 * 32), scratch(32 * 8), scratch(8 * 8)
    words_a, words_b = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.SECOND_SOURCE)
    words_c, result = row_of(registers, op, micro.THIRD_SOURCE), row_of(registers, op, micro.RESULT)
    for register in range(steps * groups):
        _spread(format_a, moved(a, register_bytes * register), moved(words_a, 128 * register))
    for step in range(steps):
        _turn(format_b, moved(b, register_bytes * step), moved(words_b, 128 * step))
    for i in range(groups):
        before, after = moved(words_c, 256 * i), moved(result, 256 * i)
        if accumulator >= S32:
            fragments.load_s32(c, before)
        else:
            fragments.load_f32(c, before)
        rows_a, stride = moved(a, register_bytes * i), register_bytes * groups
        if shift == 0:
            fragments.product_1(c, rows_a, b, steps, stride)
        elif shift == 1:
            fragments.product_2(c, rows_a, b, steps, stride)
        else:
            fragments.product_4(c, rows_a, b, steps, stride)
        if accumulator == S32_SATURATED:
            fragments.store_saturated(after, c)
        elif accumulator == S32:
            fragments.store_s32(after, c)
        else:
            fragments.store_f32(after, c)


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
