"""What the conversions and the arithmetic on halves of `expressions.cu` mean, in Python, as in `twins`."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from float_twins import bits32, bits64, fma, larger, round_to, smaller
from twins import M32, signed


def _int_to_float(value: int, dtype: type = np.float32, toward: int = 0) -> float:
    return round_to(Fraction(value), dtype, toward) if value else dtype(0)


def _float_to_int(x: float, bits: int, sign: bool, rounded: Callable[[float], float], nan: int) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
    if math.isnan(x):
        return nan
    if math.isinf(x):
        return high if x > 0 else low
    return min(max(int(rounded(float(x))), low), high)


def half_bits(x: float) -> int:
    with np.errstate(all="ignore"):
        return 0x7FFF if math.isnan(x) else int(np.float16(x).view(np.uint16))


def brain_bits(x: np.float32) -> int:
    """bfloat16, rounded to nearest even."""
    bits = int(np.float32(x).view(np.uint32))
    return 0x7FFF if math.isnan(x) else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def half(bits: int) -> np.float32:
    return np.float32(np.uint16(bits & 0xFFFF).view(np.float16))


def brain(bits: int) -> np.float32:
    return np.uint32((bits & 0xFFFF) << 16).view(np.float32)


def _narrowed(wide: int) -> int:
    """Float64 bits to those of a float32. A NaN keeps its sign and the top of its fraction, and becomes quiet."""
    if wide & (1 << 63) - 1 > 0x7FF << 52:
        return wide >> 63 << 31 | 0x7FC00000 | wide >> 29 & 0x7FFFFF
    with np.errstate(all="ignore"):
        return bits32(np.float32(np.uint64(wide).view(np.float64)))


def _widened(single: int) -> int:
    """Float32 bits to those of a float64. A NaN keeps its sign and its fraction, and becomes quiet."""
    if single & M32 >> 1 > 0xFF << 23:
        return single >> 31 << 63 | 0x7FF8 << 48 | (single & 0x7FFFFF) << 29
    return bits64(np.uint32(single).view(np.float32))


def conversions(a: int, b: int, c: int) -> list[int]:
    x, w = signed(a), b << 32 | a
    f, d = np.uint32(a).view(np.float32), np.uint64(w).view(np.float64)
    s, top = signed(w, 64), 1 << 63
    h = half(a)
    return [
        bits32(_int_to_float(a)),
        bits32(_int_to_float(x)),
        bits32(_int_to_float(a, toward=2)),
        bits32(_int_to_float(x, toward=1)),
        bits32(_int_to_float(x, toward=-1)),
        bits32(_int_to_float(w)),
        bits32(_int_to_float(s)),
        bits32(_int_to_float(w, toward=1)),
        bits32(np.float32(a & 0xFFFF)),
        bits32(np.float32(signed(a >> 8, 8))),
        bits64(_int_to_float(a, np.float64)),
        bits64(_int_to_float(x, np.float64)),
        bits64(_int_to_float(w, np.float64)),
        bits64(_int_to_float(s, np.float64)),
        _float_to_int(f, 32, True, math.trunc, 0) & M32,
        _float_to_int(f, 32, True, np.rint, 0) & M32,
        _float_to_int(f, 32, True, math.floor, 0) & M32,
        _float_to_int(f, 32, True, math.ceil, 0) & M32,
        _float_to_int(f, 32, False, math.trunc, 0),
        _float_to_int(f, 32, False, np.rint, 0),
        _float_to_int(f, 64, True, math.trunc, top),
        _float_to_int(f, 64, False, math.trunc, top),
        _float_to_int(d, 32, True, math.trunc, 1 << 31) & M32,
        _float_to_int(d, 32, False, np.rint, 1 << 31),
        _float_to_int(d, 64, True, math.trunc, top),
        _float_to_int(d, 64, False, math.floor, top),
        _narrowed(w),
        _widened(a),
        half_bits(f),
        bits32(h),
        bits32(half(a >> 16)),
        brain_bits(f),
        int(brain(a).view(np.uint32)),
        half_bits(_to_half(x)),
        _float_to_int(h, 32, True, np.rint, 0) & M32,
    ]


def _to_half(value: int) -> float:
    """An integer rounded once: float64 holds it exactly, NumPy rounds from there."""
    return np.float64(value)


def _fma_half(a: int, b: int, c: int, kind: str) -> int:
    """One half of HFMA2, rounded once: exact products and sums as fractions."""
    widen = half if kind == "f16" else brain
    x, y, z = (float(widen(v)) for v in (a, b, c))
    with np.errstate(all="ignore"):
        if not all(map(math.isfinite, (x, y, z))):
            total = np.float32(np.float64(x) * np.float64(y) + np.float64(z))
            return half_bits(total) if kind == "f16" else brain_bits(total)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        zero = np.float32(fma(np.float32(x), np.float32(y), np.float32(z)))
        return int(zero.view(np.uint32)) >> 16
    return _nearest_half(exact, kind)


def _nearest_half(exact: Fraction, kind: str) -> int:
    smallest, bits, largest = (24, 11, 15) if kind == "f16" else (133, 8, 127)
    magnitude, sign = abs(exact), 0x8000 if exact < 0 else 0
    exponent = math.floor(math.log2(magnitude.numerator) - math.log2(magnitude.denominator))
    while Fraction(2) ** exponent > magnitude:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    unit = Fraction(2) ** max(exponent - bits + 1, -smallest)
    steps = magnitude / unit
    whole = steps.numerator // steps.denominator
    rest = steps - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
    value = whole * unit
    if value >= Fraction(2) ** (largest + 1):
        return sign | (0x7C00 if kind == "f16" else 0x7F80)
    near = np.float32(float(value))
    return sign | (half_bits(near) if kind == "f16" else brain_bits(near))


def _pairwise(function: Callable[..., int], *words: int) -> int:
    return function(*(w >> 16 for w in words)) << 16 | function(*(w & 0xFFFF for w in words))


def halves(a: int, b: int, c: int) -> list[int]:
    one, minus_zero = 0x3C00, 0x8000

    def f16(x: int, y: int, z: int) -> int:
        return _fma_half(x & 0xFFFF, y & 0xFFFF, z & 0xFFFF, "f16")

    def bf16(x: int, y: int, z: int) -> int:
        return _fma_half(x & 0xFFFF, y & 0xFFFF, z & 0xFFFF, "bf16")

    low, high = a & 0xFFFF, a >> 16
    x, y, x_high, y_high = half(a), half(b), half(a >> 16), half(b >> 16)
    constant = half_bits(0.25) | half_bits(-3.0) << 16
    return [
        _pairwise(lambda p, q: f16(p, one, q), a, b),
        _pairwise(lambda p, q: f16(q, 0xBC00, p), a, b),
        _pairwise(lambda p, q: f16(p, q, minus_zero), a, b),
        _pairwise(f16, a, b, c),
        _pairwise(lambda q, r: f16(low, q, r), b, c),
        _pairwise(lambda q, r: f16(high, q, r ^ 0x8000), b, c),
        f16(high, b, c >> 16) << 16 | f16(low, b >> 16, c),
        _pairwise(lambda p, q: f16(p, one, q), a, constant),
        f16(low, b >> 16, c),
        f16(high, one, b),
        int(x < y),
        int(x_high >= y),
        int(x_high == y_high or math.isnan(x_high) or math.isnan(y_high)),
        _pairwise(lambda p, q: half_bits(larger(half(p), half(q))), a, b),
        _pairwise(lambda p, q: half_bits(smaller(half(p), half(q))), a, b),
        _pairwise(lambda p, q: bf16(p, 0x3F80, q), a, b),
        _pairwise(lambda p, q: bf16(p, q, minus_zero), a, b),
        _pairwise(bf16, a, b, c),
    ]
