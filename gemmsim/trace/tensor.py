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

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from gemmsim.trace import micro
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.lower.memory import SHARED
from gemmsim.trace.lower.tensor import BF16, F16, F64, S8, S32, S32_SATURATED, TF32
from gemmsim.trace.memory_access import _append, _fault, _identify
from gemmsim.trace.raw import as_bits, as_float, get_u16, get_u32, get_u64, set_u32
from gemmsim.trace.state import (
    PARTIAL_WARP,
    PATTERN_ALIGNMENT,
    PATTERN_HIGH,
    PATTERN_WORDS,
    PATTERNS_AT,
    SHARED_AT,
    SHARED_BYTES,
)

# mypy: disable-error-code="no-untyped-def"

_LOAD_MATRIX = CONTROL_NUMBER["load_matrix"]
_ROW_BYTES = 16  # of an 8 x 8 matrix of 16-bit elements
_FULL = np.uint32(0xFFFFFFFF)

_jit = njit(cache=True, boundscheck=False, error_model="numpy")


@intrinsic
def _fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def _double(typingctx: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@intrinsic
def _double_bits(typingctx: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@_jit
def tensor(kind, state, op, mask, warp, context):
    """Execute a `load_matrix` or `multiply_matrix`; returns 0 or a fault status. All lanes take part, or none.

    state, op, context   addresses of the warp's rows, the micro-operation, and the slots named in `gemmsim.trace.state`
    """
    if mask != _FULL:
        return 0 if mask == np.uint32(0) else PARTIAL_WARP
    if kind == _LOAD_MATRIX:
        return _load_matrix(state, op, warp, context)
    if np.int64(get_u32(op, micro.IMMEDIATE + 1)) == F64:
        _multiply_double(state, op)
    else:
        _multiply(state, op)
    return 0


@_jit
def _row(state, op, column):
    return state + np.uint64(get_u32(op, column)) * np.uint64(4)


@_jit
def _load_matrix(state, op, warp, context):
    """Eight lanes give the rows of a matrix; element (r, c) goes to lane 4 r + c / 2, transposed to 4 c + r / 2."""
    detail = np.int64(get_u32(op, micro.BARRIER))
    matrices, transposed = detail & 7, detail >> 3
    addresses, result = _row(state, op, micro.SOURCE), _row(state, op, micro.RESULT)
    asked = _FULL >> np.uint32(32 - 8 * matrices)
    pc = np.int64(get_u32(op, micro.INSTRUCTION))
    pattern, base = _identify(context, addresses, asked, pc, warp)
    shape = get_u64(context, PATTERNS_AT) + np.uint64(pattern * PATTERN_WORDS * 8)
    limit = get_u64(context, SHARED_BYTES)
    beyond = base + get_u64(shape, PATTERN_HIGH) + np.uint64(_ROW_BYTES) > limit
    if beyond or get_u64(shape, PATTERN_ALIGNMENT) & np.uint64(_ROW_BYTES - 1) != np.uint64(0):
        return _fault(context, addresses, asked, _ROW_BYTES, SHARED, limit)
    _append(context, pc, warp, pattern, base)
    shared = get_u64(context, SHARED_AT)
    for matrix in range(matrices):
        for lane in range(32):
            high, low = np.int64(lane >> 2), np.int64(lane & 3)
            if transposed:
                first = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low))
                second = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low + 1))
                word = np.uint32(get_u16(first, high)) | np.uint32(get_u16(second, high)) << np.uint32(16)
            else:
                word = get_u32(shared + np.uint64(get_u32(addresses, 8 * matrix + high)), low)
            set_u32(result, matrix * 32 + lane, word)
    return 0


@_jit
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


@_jit
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


@_jit
def _multiply(state, op):
    detail = np.int64(get_u32(op, micro.BARRIER))
    format_a, format_b = detail & 15, detail >> 4
    depth, accumulator = np.int64(get_u32(op, micro.IMMEDIATE)), np.int64(get_u32(op, micro.IMMEDIATE + 1))
    groups = np.int64(get_u32(op, micro.IMMEDIATE + 2)) >> 3  # of eight rows
    packed = 1 if format_a == TF32 else 2 if format_a <= BF16 else 4
    a, b, c = np.empty((16, 32)), np.empty((32, 8)), np.empty((16, 8))
    words_a, words_b = _row(state, op, micro.SOURCE), _row(state, op, micro.SOURCE + 3)
    words_c, result = _row(state, op, micro.SOURCE + 6), _row(state, op, micro.RESULT)
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
                result, r * 32 + lane, np.uint32(np.int64(total)) if accumulator >= S32 else as_bits(np.float32(total))
            )


@_jit
def _load_double(rows, register, lane):
    low, high = get_u32(rows, 64 * register + lane), get_u32(rows, 64 * register + 32 + lane)
    return _double(np.uint64(low) | np.uint64(high) << np.uint64(32))


@_jit
def _multiply_double(state, op):
    depth, groups = np.int64(get_u32(op, micro.IMMEDIATE)), np.int64(get_u32(op, micro.IMMEDIATE + 2)) >> 3
    words_a, words_b = _row(state, op, micro.SOURCE), _row(state, op, micro.SOURCE + 3)
    words_c, result = _row(state, op, micro.SOURCE + 6), _row(state, op, micro.RESULT)
    d = np.empty((16, 8))
    for lane in range(32):
        for r in range(2 * groups):
            g, column = (lane >> 2), 2 * (lane & 3) + (r & 1)
            total = _load_double(words_c, r, lane)
            for k in range(depth):  # A's row g is in the lanes 4 g + k mod 4, B's column in 4 column + k mod 4
                x = _load_double(words_a, (k >> 2) * groups + (r >> 1), 4 * g + (k & 3))
                y = _load_double(words_b, k >> 2, 4 * column + (k & 3))
                total = _fma(x, y, total)
            d[g + 8 * (r >> 1), column] = total
    for lane in range(32):
        for r in range(2 * groups):
            bits = _double_bits(d[(lane >> 2) + 8 * (r >> 1), 2 * (lane & 3) + (r & 1)])
            set_u32(result, 64 * r + lane, np.uint32(bits & np.uint64(0xFFFFFFFF)))
            set_u32(result, 64 * r + 32 + lane, np.uint32(bits >> np.uint64(32)))
