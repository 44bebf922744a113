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

from gemmsim.trace.compiled import ADDRESS, DOUBLE, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace.lower.tensor import BF16, F16, F64, MATRIX_ROW_BYTES, S8, S32, S32_SATURATED, TF32
from gemmsim.trace.memory_access import blame, record
from gemmsim.trace.micro import (
    DETAIL,
    IMMEDIATE,
    RESULT,
    SECOND_IMMEDIATE,
    SECOND_SOURCE,
    SOURCE,
    THIRD_IMMEDIATE,
    THIRD_SOURCE,
)
from gemmsim.trace.raw import (
    as_double,
    as_float,
    double_bits,
    float_bits,
    fused,
    get_f64,
    get_n32,
    get_u16,
    get_u32,
    get_u64,
    lane_address,
    moved,
    row_of,
    scratch,
    set_f64,
    set_u32,
)
from gemmsim.trace.state import PATTERN_ALIGNMENT, PATTERN_HIGH, SHARED_AT, SHARED_BYTES, SHARED_RANGE

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)
_LEAST, _MOST = -(2.0**31), 2.0**31 - 1


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, TRUTH)
def tensor(context, state, op, warp, loads):
    """Execute a `load_matrix`, or a `multiply_matrix`; returns 0 or a fault status. All lanes take part.

    context, state, op   addresses of the words named in `gemmsim.trace.state`, the warp's rows, the micro-operation
    """
    if loads:
        return _load_matrix(context, state, op, warp)
    if get_n32(op, SECOND_IMMEDIATE) == F64:
        _multiply_double(state, op)
    else:
        _multiply(state, op)
    return np.int64(0)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _load_matrix(context, state, op, warp):
    """Eight lanes give the rows of a matrix; element (r, c) goes to lane 4 r + c / 2, transposed to 4 c + r / 2.

    Returns 0 or a fault status.
    """
    detail = get_n32(op, DETAIL)
    matrices, transposed = detail & 7, detail >> 3
    addresses, result = row_of(state, op, SOURCE), row_of(state, op, RESULT)
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


@subroutine(DOUBLE, WORD)
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


@subroutine(DOUBLE, WORD, INDEX, INDEX)
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


@subroutine(NOTHING, ADDRESS, ADDRESS)
def _multiply(state, op):
    detail = get_n32(op, DETAIL)
    format_a, format_b = detail & 15, detail >> 4
    depth, accumulator = get_n32(op, IMMEDIATE), get_n32(op, SECOND_IMMEDIATE)
    groups = get_n32(op, THIRD_IMMEDIATE) >> 3  # of eight rows
    shift = 0 if format_a == TF32 else 1 if format_a <= BF16 else 2  # of the number of elements in a register
    a, b, c = scratch(16 * 32), scratch(32 * 8), scratch(16 * 8)
    words_a, words_b = row_of(state, op, SOURCE), row_of(state, op, SECOND_SOURCE)
    words_c, result = row_of(state, op, THIRD_SOURCE), row_of(state, op, RESULT)
    for lane in range(32):
        g, t = lane >> 2, lane & 3
        for step in range(depth >> 2 + shift):
            for j in range(1 << shift):
                k = (4 * step + t << shift) + j
                for i in range(groups):
                    word = get_u32(words_a, (step * groups + i) * 32 + lane)
                    set_f64(a, 32 * (g + 8 * i) + k, _element(word, format_a, j))
                set_f64(b, 8 * k + g, _element(get_u32(words_b, step * 32 + lane), format_b, j))
        for r in range(2 * groups):
            word = get_u32(words_c, r * 32 + lane)
            value = np.float64(np.int32(word)) if accumulator >= S32 else np.float64(as_float(word))
            set_f64(c, 8 * (g + 8 * (r >> 1)) + 2 * t + (r & 1), value)
    for i in range(8 * groups):
        for k in range(depth):
            x = get_f64(a, 32 * i + k)
            for j in range(8):
                set_f64(c, 8 * i + j, get_f64(c, 8 * i + j) + x * get_f64(b, 8 * k + j))
    for lane in range(32):
        g, t = lane >> 2, lane & 3
        for r in range(2 * groups):
            total = get_f64(c, 8 * (g + 8 * (r >> 1)) + 2 * t + (r & 1))
            if accumulator == S32_SATURATED:
                total = _LEAST if total < _LEAST else total
                total = _MOST if total > _MOST else total
            set_u32(
                result,
                r * 32 + lane,
                np.uint32(np.int64(total)) if accumulator >= S32 else float_bits(np.float32(total)),
            )


@subroutine(DOUBLE, ADDRESS, INDEX, INDEX)
def _load_double(rows, register, lane):
    return as_double(lane_address(moved(rows, 256 * register), lane))


@subroutine(NOTHING, ADDRESS, ADDRESS)
def _multiply_double(state, op):
    depth, groups = get_n32(op, IMMEDIATE), get_n32(op, THIRD_IMMEDIATE) >> 3
    words_a, words_b = row_of(state, op, SOURCE), row_of(state, op, SECOND_SOURCE)
    words_c, result = row_of(state, op, THIRD_SOURCE), row_of(state, op, RESULT)
    d = scratch(16 * 8)
    for lane in range(32):
        for r in range(2 * groups):
            g, column = (lane >> 2), 2 * (lane & 3) + (r & 1)
            total = _load_double(words_c, r, lane)
            for k in range(depth):  # A's row g is in the lanes 4 g + k mod 4, B's column in 4 column + k mod 4
                x = _load_double(words_a, (k >> 2) * groups + (r >> 1), 4 * g + (k & 3))
                y = _load_double(words_b, k >> 2, 4 * column + (k & 3))
                total = fused(x, y, total)
            set_f64(d, 8 * (g + 8 * (r >> 1)) + column, total)
    for lane in range(32):
        for r in range(2 * groups):
            bits = double_bits(get_f64(d, 8 * ((lane >> 2) + 8 * (r >> 1)) + 2 * (lane & 3) + (r & 1)))
            set_u32(result, 64 * r + lane, np.uint32(bits & np.uint64(0xFFFFFFFF)))
            set_u32(result, 64 * r + 32 + lane, np.uint32(bits >> np.uint64(32)))
