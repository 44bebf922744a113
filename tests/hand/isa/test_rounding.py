"""Arithmetic with a rounding mode against exact rational arithmetic, also where results are subnormal or overflow."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy_lanes import NumpyLanes

from gemmsim.isa.semantics.operations import load
from gemmsim.isa.semantics.rounding import CEIL, FLOOR, NEAREST, TRUNC, _scaled

DIRECTED = (FLOOR, CEIL, TRUNC)
LARGEST = {np.float32: float(np.finfo(np.float32).max), np.float64: float(np.finfo(np.float64).max)}
LEAST = {np.float32: 2.0**-149, np.float64: 2.0**-1074}
EDGES_64 = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.5, -0.1, 1e308, -1.7976931348623157e308]
EDGES_32 = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 1.1754944e-38, 1.5, -0.1, 1e38, -3.4028235e38]


def rounded(exact: Fraction, mode: int, dtype: type) -> float:
    """The value of `dtype` that `mode` gives for a number other than 0, by comparing the two values around it."""
    magnitude = abs(exact)
    low: float
    if magnitude >= Fraction(LARGEST[dtype]):
        low = LARGEST[dtype]
        step = Fraction(LARGEST[dtype]) - Fraction(float(np.nextafter(dtype(LARGEST[dtype]), dtype(0))))
        high, above = math.inf, Fraction(LARGEST[dtype]) + step
    else:
        exponent = math.frexp(float(magnitude))[1] if magnitude >= Fraction(2.0**-1074) else -1080
        digits = 24 if dtype is np.float32 else 53
        step = max(Fraction(2) ** (exponent - digits - 1), Fraction(LEAST[dtype]))
        while Fraction(2) ** digits * step <= magnitude:
            step *= 2
        low, above = float(magnitude // step * step), magnitude // step * step + step
        high = float(above) if above <= Fraction(LARGEST[dtype]) else math.inf
    sign = 1.0 if exact > 0 else -1.0
    if Fraction(low) == magnitude:
        return sign * low
    if mode == NEAREST:
        below = magnitude - Fraction(low)
        even = (Fraction(low) / step) % 2 == 0
        up = below > above - magnitude or (below == above - magnitude and not even)
    else:
        up = mode == (CEIL if exact > 0 else FLOOR)
    return sign * (high if up else low)


def compute(name: str, type_: str, sources: list[np.ndarray], *immediates: int) -> np.ndarray:
    lanes = [NumpyLanes(type_, source) for source in sources]
    numbers = [NumpyLanes("u32", np.full(len(sources[0]), i)) for i in immediates]
    return load()[name].function(*lanes, *numbers).array


def values(dtype: type, count: int, seed: int) -> np.ndarray:
    """Random values: of about 1, of the whole range, and near the least and the largest."""
    random = np.random.default_rng(seed)
    limit = 126 if dtype is np.float32 else 1020
    exponents = random.choice([0, 1, -limit, limit - 1, -limit // 2, limit // 2], count) + random.integers(
        -30, 3, count
    )
    with np.errstate(all="ignore"):
        return (random.normal(0, 1, count) * np.exp2(exponents.astype(np.float64))).astype(dtype)


def cases(dtype: type, operands: int) -> list[np.ndarray]:
    edges = EDGES_32 if dtype is np.float32 else EDGES_64
    grid = np.array(np.meshgrid(*[edges] * operands)).reshape(operands, -1).astype(dtype)
    random = [values(dtype, 300, seed) for seed in range(operands)]
    if operands == 3:  # sums that cancel, all but the last digits
        with np.errstate(all="ignore"):
            random[2][:150] = -(random[0][:150] * random[1][:150])
    return [np.concatenate([g, np.where(np.isfinite(r), r, dtype(1))]) for g, r in zip(grid, random, strict=True)]


def check(found: np.ndarray, exact: list[Fraction], mode: int, dtype: type, sources: list[np.ndarray]) -> None:
    for i, (got, want) in enumerate(zip(found, exact, strict=True)):
        if want:
            expected = rounded(want, mode, dtype)
            assert float(got) == expected, (mode, [float(s[i]).hex() for s in sources], float(got).hex())


@pytest.mark.parametrize("mode", DIRECTED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multiply_add(dtype: type, mode: int) -> None:
    a, b, c = cases(dtype, 3)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    name, extra = ("ffma_directed", (0,)) if dtype is np.float32 else ("dfma_directed", (0,))
    found = compute(name, f"f{np.dtype(dtype).itemsize * 8}", [a, b, c], mode, *extra)
    check(found, exact, mode, dtype, [a, b, c])


@pytest.mark.parametrize("mode", DIRECTED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_product(dtype: type, mode: int) -> None:
    a, b = cases(dtype, 2)
    exact = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)]
    name, extra = ("fmul_directed", (0,)) if dtype is np.float32 else ("dmul_directed", (0,))
    found = compute(name, f"f{np.dtype(dtype).itemsize * 8}", [a, b], mode, *extra)
    check(found, exact, mode, dtype, [a, b])
    zero = np.array([want == 0 for want in exact])
    assert (np.signbit(found[zero]) == np.signbit(a[zero]) ^ np.signbit(b[zero])).all()


@pytest.mark.parametrize("mode", DIRECTED)
def test_zero_sums(mode: int) -> None:
    """x - x is -0 where it is rounded down, and +0 otherwise; -0 + -0 is -0, and 0 * -1 + -0 too."""
    a, b, c = (np.array(v) for v in ([1.5, -2.0, -0.0, 0.0], [1.0, 1.0, 1.0, -1.0], [-1.5, 2.0, -0.0, -0.0]))
    negative = [mode == FLOOR, mode == FLOOR, True, True]
    assert np.signbit(compute("dfma_directed", "f64", [a, b, c], mode, 0)).tolist() == negative
    singles = [v.astype(np.float32) for v in (a, b, c)]
    assert np.signbit(compute("ffma_directed", "f32", singles, mode, 0)).tolist() == negative


@pytest.mark.parametrize("mode", [NEAREST, *DIRECTED])
def test_narrowing(mode: int) -> None:
    a = np.concatenate([values(np.float64, 400, 9) * 2.0**s for s in (0, 880, -880)])
    with np.errstate(all="ignore"):
        a = a[np.isfinite(a) & (a != 0)]
    found = compute("f64_to_f32_directed", "f64", [a], mode)
    check(found, [Fraction(float(x)) for x in a], mode, np.float32, [a])


@pytest.mark.parametrize("mode", [NEAREST, *DIRECTED])
def test_integers_to_double(mode: int) -> None:
    a = np.array([0, 1, 2**53 + 1, 2**64 - 1, 2**63 + 1, 2**54 + 2, 2**54 + 6, 2**63 - 1], np.uint64)
    for signed in (0, 1):
        exact = [Fraction(int(x)) for x in (a.view(np.int64) if signed else a)]
        found = compute("i2f_f64_directed", "u64", [a], signed, mode)
        check(found, exact, mode, np.float64, [a])
        assert found[0] == 0


def test_powers_of_two_are_clamped_at_both_ends() -> None:
    """2**-1001 and less count as 2**-1000, 2**1001 and more as 2**1000: the product stays a normal number."""
    exponents = np.array([-5000, -1001, -1000, -999, 0, 999, 1000, 1001, 5000], np.int64)
    found = _scaled(NumpyLanes("f64", np.full(len(exponents), 1.5)), NumpyLanes("s64", exponents))
    assert isinstance(found, NumpyLanes)
    assert found.array.tolist() == [1.5 * 2.0 ** max(-1000, min(int(e), 1000)) for e in exponents]
