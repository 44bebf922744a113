"""What the expressions of `expressions.cu` mean, in Python: one function a kernel, results in the same order."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def quotient(x: int, y: int) -> int:
    """Division as C has it: toward zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def remainder(x: int, y: int) -> int:
    return x - quotient(x, y) * y


def _ffs(x: int) -> int:
    return (x & -x).bit_length()


def _reversed(x: int, bits: int) -> int:
    return int(format(x, f"0{bits}b")[::-1], 2)


def byte_perm(a: int, b: int, selector: int) -> int:
    """CUDA Math API: bit 3 of a selector has no effect in __byte_perm."""
    pair = b << 32 | a
    return sum((pair >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i for i in range(4))


def _dp4a(a: int, b: int, c: int, sign: bool) -> int:
    def byte(x: int, i: int) -> int:
        value = x >> 8 * i & 0xFF
        return signed(value, 8) if sign else value

    return c + sum(byte(a, i) * byte(b, i) for i in range(4))


def integer32(a: int, b: int, c: int) -> list[int]:
    x, y, z, n = signed(a), signed(b), signed(c), c & 31
    divides = y != 0 and not (x == -(1 << 31) and y == -1)
    shifts = c & 31
    clamped = min(c, 32)
    pair = a << 32 | b  # of __funnelshift: hi:lo is b:a
    pair = b << 32 | a
    byte_c = [c >> 8 * i & 0xFF for i in range(4)]
    assert len(byte_c) == 4
    return [
        a + b + c,
        a - b,
        a - b - c,
        -x - y,
        x * y + z,
        x * y - z,
        z - x * y,
        -(x * 24) + y,
        x * 9,
        a * b >> 32,
        x * y >> 32,
        a // b if b else 7,
        a % b if b else 7,
        quotient(x, y) if divides else 7,
        remainder(x, y) if divides else 7,
        a // 7,
        a % 10,
        quotient(x, 7),
        remainder(x, 24),
        quotient(x, 8),
        quotient(x, -5),
        a << n,
        a >> n,
        x >> n,
        (pair << shifts) >> 32,
        pair >> shifts,
        (pair << clamped) >> 32,
        pair >> clamped,
        a & b,
        a | b,
        a ^ b,
        ~a & b | c,
        (a & b) | (a & c) | (b & c),
        a ^ b ^ c,
        (a & 0xFF00) | (b & ~0xFF00),
        min(x, y),
        max(x, y),
        min(a, b),
        max(a, b),
        min(max(x, y), z),
        max(signed(x + y), z),
        min(a + b & M32, c),
        max(min(x, y), z),
        abs(x),
        a.bit_count(),
        32 - a.bit_length(),
        _ffs(a),
        _reversed(a, 32),
        byte_perm(a, b, c),
        byte_perm(a, b, 0x9D3A),
        byte_perm(a, 0, 0x4140),
        _dp4a(a, b, c, True),
        _dp4a(a, b, c, False),
        abs(x - y) + c,
        abs(a - b) + c,
        signed(a, 8),
        signed(a, 16),
        a & 0xFFFF,
        signed(x << 11) >> 15,
        (a << 3 & M32) >> 7,
        x + y >> 1,
        x + y + 1 >> 1,
        a + (b << 2),
        a - (b << 5),
        (a << 4) - b,
        ((a << 33 & M64) >> 32) + b,
        x < y,
        a <= b,
        x > y and b != c,
        (x < y) != (y < z),
        b if x == y else c,
        (1 if b > c else 2) if a > b else (3 if b > c else 4),
        b if a & 1 else c,
        (a & 4 != 0) + (b & 8 != 0) + (c & 16 != 0),
        (x < 0) | (y < 0) << 1 | (z < 0) << 2 | (x < y) << 3 | (y < z) << 4,
        a == b or b == c,
        a * b >> 13,
        signed(x << 8) // 256 * (signed(y << 8) // 256),
        (a & 0xFFFFFF) * (b & 0xFFFFFF),
        a * 0x10001 + 0xDEADBEEF,
        1 << n,
        (1 << n) - 1,
    ]


def integer64(a: int, b: int, c: int) -> list[int]:
    x, y, z, n = signed(a, 64), signed(b, 64), signed(c, 64), c & 63
    low, low_b, low_c = signed(a), signed(b), signed(c)
    divides = y != 0 and not (x == -(1 << 63) and y == -1)
    return [
        a + b,
        a - b,
        a + b + c,
        a - b - c,
        -x,
        a * b,
        a * b + c,
        a * b >> 64,
        x * y >> 64,
        (a & M32) * (b & M32),
        low * low_b,
        low * low_b + z,
        (a & M32) * (b & M32) + c,
        z - low * low_b,
        a // b if b else 7,
        a % b if b else 7,
        quotient(x, y) if divides else 7,
        remainder(x, y) if divides else 7,
        a // 1000000007,
        quotient(x, 24),
        a << n,
        a >> n,
        x >> n,
        a << 7,
        a >> 39,
        x >> 33,
        a + (b << 3),
        a + low_c * 4,
        a + (c & M32) * 16,
        a - (b << 2),
        a & b,
        a | b,
        a ^ ~b,
        min(x, y),
        max(x, y),
        min(a, b),
        max(a, b),
        abs(x),
        x < y,
        x <= y,
        x > y,
        x >= y,
        a < b,
        a <= b,
        a > b,
        a >= b,
        a == b,
        a != b,
        x < y and a > c,
        x == y or a >= c,
        b if x < 0 else c,
        b if x < y else c,
        a.bit_count(),
        64 - a.bit_length(),
        _ffs(a),
        _reversed(a, 64),
        low,
        a & M32,
        a >> 20 & M32,
    ]


# Floats. NaN results are one bit pattern: 0x7FFFFFFF for single precision, 0xFFF8000000000000 for double.


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
