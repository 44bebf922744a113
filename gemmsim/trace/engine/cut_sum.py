"""Sums the products of one matrix instruction as tensor cores do.

The exponent of a product is the sum of those of its factors, so that it may be one too small; that of a subnormal
number is the least of its type. All products of a step, and C, are cut (towards zero) so many binary places below the
largest exponent, and then added exactly. The sum is cut to single precision, or rounded to half precision, to nearest.
How many places, and how many products make a step, `gemmsim/isa/tensor_sums.toml` says. On an H200 all recorded forms
are equal to the last bit.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace.llvm import cut_sums
from gemmsim.trace.llvm.primitives import moved
from gemmsim.trace.lower.tensor import CUT_MASK, CUT_SHIFT, FORMAT_MASK, HALF, STEP_SHIFT
from gemmsim.trace.micro import BF16, F16, TF32

# mypy: disable-error-code="no-untyped-def"

_SINGLE_FRACTION, _LEAST_SINGLE, _LEAST_HALF = 23, -126, -14
C_WORDS = 64 + 32  # of C: numbers, then exponents


@subroutine(INDEX, INDEX)
def cut_places(detail):
    """Return how many places below the largest exponent the terms of a multiplication with this DETAIL are cut; 0 where
    they are not."""
    return (detail >> CUT_SHIFT) & CUT_MASK


@subroutine(INDEX, INDEX)
def block_bytes(format_):
    """Return the bytes that the numbers and exponents of a register's element take for 32 lanes."""
    return np.int64(cut_sums.WIDE_BLOCK if format_ in (TF32, BF16) else cut_sums.NARROW_BLOCK)


@subroutine(NOTHING, INDEX, INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def add_cut(detail, accumulator, c, a, b, registers, stride):
    """Add eight rows of A times B to eight rows of C.

    detail     DETAIL of the micro-operation
    c          C_WORDS words: 64 float64, and room for exponents
    a, b       blocks of terms, as `cut_sums.spread_terms` and `turn_terms` write them
    registers  number of registers of A, and of B, that take part
    stride     bytes from one register of A to the next
    """
    format_, places, most = detail & FORMAT_MASK, cut_places(detail), detail >> STEP_SHIFT
    shift = 0 if format_ == TF32 else 1 if format_ <= BF16 else 2
    for first in range(0, registers, most):
        count = min(most, registers - first)
        left, right = moved(a, stride * first), moved(b, (block_bytes(format_) << shift) * first)
        cut_sums.put_exponents(c, _LEAST_HALF if accumulator == HALF else _LEAST_SINGLE)
        if format_ == F16:
            cut_sums.product_f16(c, left, right, count, stride, places)
        elif format_ == BF16:
            cut_sums.product_bf16(c, left, right, count, stride, places)
        elif format_ == TF32:
            cut_sums.product_tf32(c, left, right, count, stride, places)
        else:
            cut_sums.product_fp8(c, left, right, count, stride, places)
        if accumulator == HALF:
            cut_sums.round_half(c)
        else:
            cut_sums.round_single(c, min(places, _SINGLE_FRACTION))
