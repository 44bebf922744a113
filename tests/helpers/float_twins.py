"""What the floating-point expressions of `expressions.cu` mean, in Python: one function a kernel, as in `twins`."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

# NaN results are one bit pattern: 0x7FFFFFFF for single precision, 0xFFF8000000000000 for double.


def bits32(x: float | np.float32) -> int:
    return 0x7FFFFFFF if math.isnan(x) else int(np.float32(x).view(np.uint32))


def round_to(exact: Fraction, dtype: type, toward: int = 0) -> float:
    """A nonzero rational number as the nearest float; `toward` -1, 1: down, up; 2: to zero."""
    near = dtype(0)
    with np.errstate(all="ignore"):
        try:
            near = dtype(exact.numerator / exact.denominator)
        except OverflowError:
            near = dtype(math.inf if exact > 0 else -math.inf)
        around = {near, np.nextafter(near, dtype(-math.inf)), np.nextafter(near, dtype(math.inf))}
    finite = sorted(v for v in around if np.isfinite(v))
    if toward == 2:
        toward = -1 if exact > 0 else 1
    if toward < 0:
        return max((v for v in finite if Fraction(float(v)) <= exact), default=dtype(-math.inf))
    if toward > 0:
        return min((v for v in finite if Fraction(float(v)) >= exact), default=dtype(math.inf))
    if np.isinf(near):
        return near
    unsigned = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(unsigned)) & 1))


def fma(a: float, b: float, c: float, dtype: type = np.float32, toward: int = 0) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            return dtype(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        product = np.float64(math.copysign(0.0, a) * math.copysign(1.0, b)) if a == 0 or b == 0 else None
        if product is None:
            return dtype(-0.0 if toward == -1 else 0.0)  # a * b = -c
        if math.copysign(1, product) == math.copysign(1, c):
            return dtype(c)
        return dtype(-0.0 if toward == -1 else 0.0)
    return round_to(exact, dtype, toward)


def smaller(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    if a == b:
        return a if math.copysign(1, a) < 0 else b
    return min(a, b)


def larger(a: float, b: float) -> float:
    return -smaller(-a, -b)


def saturated(x: float) -> np.float32:
    return np.float32(0 if math.isnan(x) or x <= 0 else min(x, 1))


def single(a: np.float32, b: np.float32, c: np.float32) -> list[int]:
    with np.errstate(all="ignore"):
        nan = math.isnan(a) or math.isnan(b)
        results = [
            a + b,
            a - b,
            a * b,
            fma(a, b, c),
            fma(-a, b, c),
            fma(a, b, -c),
            fma(a, np.float32(0.3), np.float32(1.7)),
            abs(a) - abs(b),
        ]
        magnitude = int(a.view(np.uint32)) | 0x80000000  # of a NaN too: fabsf and minus change a bit
        more = [
            smaller(a, b),
            larger(a, b),
            larger(abs(a), -b),
            larger(smaller(a, b), c),
            saturated(a),
            saturated(fma(a, b, c)),
            a / b,
            np.float32(1) / a,
            np.sqrt(a),
            np.floor(a),
            np.ceil(a),
            np.trunc(a),
            np.rint(a),
        ]
        chosen = a if a < b else c
        flags = [
            a < b,
            a <= b,
            a > b,
            a >= b,
            a == b,
            a != b,
            not a < b,
            not a <= b,
            not a > b,
            not a >= b,
            a < b < c,
            a < b or b != c,
            nan,
            math.isinf(a),
            bool(np.signbit(a)),
        ]
        sign = int(a.view(np.uint32)) & 0x7FFFFFFF | int(b.view(np.uint32)) & 0x80000000
        toward_zero = fma(a, b, c, np.float32, 2)
    return [
        *map(bits32, results),
        magnitude,
        *map(bits32, more),
        int(chosen.view(np.uint32)),
        *map(int, flags),
        sign,
        bits32(toward_zero),
    ]


def bits64(x: float) -> int:
    return 0xFFF8000000000000 if math.isnan(x) else int(np.float64(x).view(np.uint64))


def dbl(a: np.float64, b: np.float64, c: np.float64) -> list[int]:
    with np.errstate(all="ignore"):
        results = [
            a + b,
            a - b,
            a * b,
            fma(a, b, c, np.float64),
            fma(-a, b, -c, np.float64),
            fma(a, np.float64(0.75), abs(c), np.float64),
        ]
        flags = [a < b, a >= b, a == b, not a > b, a != b and b < c]
        chosen = a if a < b else c
    return [*map(bits64, results), *map(int, flags), int(chosen.view(np.uint64))]
