"""What a whole warp does at once with matrices: ldmatrix (LDSM) and multiply-add (HMMA, IMMA, DMMA).

Which lane holds which element: PTX ISA, "Matrix fragments for mma" and "ldmatrix". With g = lane / 4, t = lane % 4 and
e elements in a register, all shapes m8 and m16, n8 follow one rule: register r of A holds row g + 8 (r mod m/8) from
column e t + 4 e (r div m/8) on; register r of B holds column g from row e t + 4 e r on; register r of the result row
g + 8 (r div 2), column 2 t + r mod 2.

Arithmetic: products of 16-bit floats, TF32 and 8-bit integers are exact here as on the tensor cores, and so is their
sum to within float64; it is rounded once, to nearest, for each instruction. Tensor cores align the terms to the largest
one and cut them off, a few at a time (Fasi et al., PeerJ CS 7:e330, 2021), so single precision results may differ in
the last bits. Integers wrap or saturate exactly; double precision is a chain of fused multiply-adds in the order of k.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gemmsim.trace import micro
from gemmsim.trace.lower.tensor import BF16, F16, F64, MATRIX_ROW_BYTES, S8, S32, S32_SATURATED, TF32
from gemmsim.trace.memory_access import blame, record
from gemmsim.trace.raw import (
    as_double,
    as_float,
    double_bits,
    float_bits,
    fused,
    get_u16,
    get_u32,
    get_u64,
    lane_address,
    moved,
    row_of,
    set_u32,
)
from gemmsim.trace.state import PATTERN_ALIGNMENT, PATTERN_HIGH, SHARED_AT, SHARED_BYTES, SHARED_RANGE

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)


@njit(boundscheck=False)
def multiply_matrix(state, op):
    """state, op   addresses of the warp's rows and the micro-operation. All lanes take part."""
    if np.int64(get_u32(op, micro.IMMEDIATE + 1)) == F64:
        _multiply_double(state, op)
    else:
        _multiply(state, op)


@njit(boundscheck=False)
def load_matrix(context, state, op, warp):
    """Eight lanes give the rows of a matrix; element (r, c) goes to lane 4 r + c / 2, transposed to 4 c + r / 2.

    Returns 0 or a fault status.
    """
    detail = np.int64(get_u32(op, micro.DETAIL))
    matrices, transposed = detail & 7, detail >> 3
    addresses, result = row_of(state, op, micro.SOURCE), row_of(state, op, micro.RESULT)
    asked = np.uint32(_FULL >> np.uint32(32 - 8 * matrices))
    shape = record(context, addresses, asked, op, warp)
    limit = get_u64(context, SHARED_BYTES)
    last = lane_address(addresses, 0) - get_u64(shape, 0) + get_u64(shape, PATTERN_HIGH)
    if moved(last, MATRIX_ROW_BYTES) > limit or get_u64(shape, PATTERN_ALIGNMENT) & np.uint64(15) != np.uint64(0):
        return blame(context, addresses, asked, np.int64(MATRIX_ROW_BYTES), limit, np.int64(SHARED_RANGE))
    shared = get_u64(context, SHARED_AT)
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


@njit(boundscheck=False)
def _half(bits):
    """IEEE binary16 to float64, exactly."""
    exponent, fraction = np.int64(bits >> np.uint32(10)) & 31, np.int64(bits) & 1023
    if exponent == 31:
        value = np.inf if fraction == 0 else np.nan
    elif exponent == 0:
        value = np.float64(fraction) * 2.0**-24
    else:
        value = np.float64(as_float(np.uint32(((exponent + 112) << 23) | (fraction << 13))))
    return -value if bits & np.uint32(0x8000) else value


@njit(boundscheck=False)
def _element(word, format_, number):
    """Element `number` of a register, exactly."""
    if format_ == F16:
        return _half((word >> np.uint32(16 * number)) & np.uint32(0xFFFF))
    if format_ == BF16:
        return np.float64(as_float(np.uint32((word >> np.uint32(16 * number)) << np.uint32(16))))
    if format_ == TF32:  # the hardware reads 19 bits of the 32
        return np.float64(as_float(word & np.uint32(0xFFFFE000)))
    byte = np.int64(word >> np.uint32(8 * number)) & 255
    return np.float64(byte - 256 if format_ == S8 and byte >= 128 else byte)


@njit(boundscheck=False)
def _multiply(state, op):
    detail = np.int64(get_u32(op, micro.DETAIL))
    format_a, format_b = detail & 15, detail >> 4
    depth, accumulator = np.int64(get_u32(op, micro.IMMEDIATE)), np.int64(get_u32(op, micro.IMMEDIATE + 1))
    groups = np.int64(get_u32(op, micro.IMMEDIATE + 2)) >> 3  # of eight rows
    packed = 1 if format_a == TF32 else 2 if format_a <= BF16 else 4
    a, b, c = np.empty((16, 32)), np.empty((32, 8)), np.empty((16, 8))
    words_a, words_b = row_of(state, op, micro.SOURCE), row_of(state, op, micro.SOURCE + 3)
    words_c, result = row_of(state, op, micro.SOURCE + 6), row_of(state, op, micro.RESULT)
    for lane in range(32):
        g, t = lane >> 2, lane & 3
        for k in range(packed * t, depth, 4 * packed):
            step = k // (4 * packed)
            for j in range(packed):
                for i in range(groups):
                    word = get_u32(words_a, (step * groups + i) * 32 + lane)
                    a[g + 8 * i, k + j] = _element(word, format_a, j)
                b[k + j, g] = _element(get_u32(words_b, step * 32 + lane), format_b, j)
        for r in range(2 * groups):
            word = get_u32(words_c, r * 32 + lane)
            c[g + 8 * (r >> 1), 2 * t + (r & 1)] = np.float64(np.int32(word) if accumulator >= S32 else as_float(word))
    for i in range(8 * groups):
        for k in range(depth):
            for j in range(8):
                c[i, j] += a[i, k] * b[k, j]
    for lane in range(32):
        g, t = lane >> 2, lane & 3
        for r in range(2 * groups):
            total = c[g + 8 * (r >> 1), 2 * t + (r & 1)]
            if accumulator == S32_SATURATED:
                total = min(max(total, -(2.0**31)), 2.0**31 - 1)
            set_u32(
                result,
                r * 32 + lane,
                np.uint32(np.int64(total)) if accumulator >= S32 else float_bits(np.float32(total)),
            )


@njit(boundscheck=False)
def _load_double(rows, register, lane):
    return as_double(lane_address(moved(rows, 256 * register), lane))


@njit(boundscheck=False)
def _multiply_double(state, op):
    depth, groups = np.int64(get_u32(op, micro.IMMEDIATE)), np.int64(get_u32(op, micro.IMMEDIATE + 2)) >> 3
    words_a, words_b = row_of(state, op, micro.SOURCE), row_of(state, op, micro.SOURCE + 3)
    words_c, result = row_of(state, op, micro.SOURCE + 6), row_of(state, op, micro.RESULT)
    d = np.empty((16, 8))
    for lane in range(32):
        for r in range(2 * groups):
            g, column = (lane >> 2), 2 * (lane & 3) + (r & 1)
            total = _load_double(words_c, r, lane)
            for k in range(depth):  # A's row g is in the lanes 4 g + k mod 4, B's column in 4 column + k mod 4
                x = _load_double(words_a, (k >> 2) * groups + (r >> 1), 4 * g + (k & 3))
                y = _load_double(words_b, k >> 2, 4 * column + (k & 3))
                total = fused(x, y, total)
            d[g + 8 * (r >> 1), column] = total
    for lane in range(32):
        for r in range(2 * groups):
            bits = double_bits(d[(lane >> 2) + 8 * (r >> 1), 2 * (lane & 3) + (r & 1)])
            set_u32(result, 64 * r + lane, np.uint32(bits & np.uint64(0xFFFFFFFF)))
            set_u32(result, 64 * r + 32 + lane, np.uint32(bits >> np.uint64(32)))
