"""Makes the inputs of the generated kernels: edge values of each type, in all combinations, and then random values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from .cases import bits_of

_SINGLES = (
    *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000),  # 0, subnormal
    *(0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000, 0x3FC00000, 0xC0200000, 0x3F7FFFFF, 0x3F800001),  # 1, 1/2, ...
    *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001),  # limits, infinity, NaN
    *(0x4F000000, 0xCF000000, 0x4F800000, 0x5F000000, 0xDF000000, 0x5F800000, 0x4AFFFFFF),  # 2^31, 2^32, 2^63, 2^64
    *(0x477FE000, 0x477FF000, 0x38800000, 0x33000000, 0x437F8000, 0x40490FDB, 0x42F60000),  # limits of half; pi
)
_DOUBLES = (
    *(0, 1 << 63, 1, (1 << 63) | 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x8010000000000000),
    *(0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000, 0x3FF8000000000000, 0xC004000000000000),
    *(0x3FEFFFFFFFFFFFFF, 0x3FF0000000000001, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000),
    *(0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8123456789ABC, 0x7FF0000000000001, 0x41E0000000000000),
    *(0xC1E0000000000000, 0x41F0000000000000, 0x43E0000000000000, 0xC3E0000000000000, 0x43F0000000000000),
    *(0x400921FB54442D18, 0x36A0000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x3690000000000001),
)
_HALVES = (
    *(0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3800, 0xB800, 0x3E00),
    *(0xC100, 0x3BFF, 0x3C01, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE12, 0x7C01, 0x7FFF, 0xFFFF, 0x4248),
)
_BRAINS = (
    *(0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x8080, 0x3F80, 0xBF80, 0x3F00, 0xBF00, 0x3FC0),
    *(0xC020, 0x3F7F, 0x3F81, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 0x7FFF, 0xFFFF, 0x4049),
)
_BYTES = (0, 1, 2, 7, 8, 31, 32, 33, 0x7F, 0x80, 0x81, 0xFF)
_WORDS = (
    *(0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF),
    *(0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFF8000, 0xFFFFFF80, 0x80808080, 0x7F7F7F7F, 0x00FF00FF),
    *(0x80008000, 0x7FFF7FFF, 0x12345678, 0x00800000, 0x55555555),
)
_LONGS = (*_WORDS, *(w << 32 for w in _WORDS[1:]), (1 << 64) - 1, (1 << 63) + 1, (1 << 63) - 1, 1 << 53)
_AMOUNTS = (*range(0, 9), 15, 16, 17, 30, 31, 32, 33, 63, 64, 65, 127, 255, 256, 0x10001, 0x80000000, 0xFFFFFFFF)
_EDGES: dict[str, tuple[int, ...]] = {
    **{"f32": _SINGLES, "f64": _DOUBLES, "f16": _HALVES, "bf16": _BRAINS},
    **{"f16x2": tuple(h | h << 16 for h in _HALVES), "bf16x2": tuple(h | h << 16 for h in _BRAINS)},
    **{"b8": _BYTES, "b16": tuple(w & 0xFFFF for w in _WORDS), "b32": _WORDS, "b64": _LONGS, "pred": (0, 1)},
    **{"u32": _AMOUNTS, "s32": tuple(n & 0xFFFFFFFF for n in range(-4, 9)), "s64": (0, 1, 1 << 32, (1 << 32) | 1)},
}


def inputs(sources: Sequence[str], rows: int) -> NDArray[np.uint64]:
    """Return the inputs of a case whose sources have these types, uint64 [sources, rows], each value in its low bits.

    Combinations of edge values come first, spread over the whole list where there are more than half of `rows`. Of the
    random rows, half have operands of like size, so that sums cancel. The values depend on `sources` and `rows` alone.
    """
    seed = hashlib.sha256(" ".join(sources).encode()).digest()
    random = np.random.default_rng(list(seed[:16]))
    combinations = list(product(*(_EDGES[type_] for type_ in sources)))
    if len(combinations) > rows // 2:
        chosen = random.choice(len(combinations), rows // 2, replace=False)
        combinations = [combinations[i] for i in sorted(chosen)]
    edges = np.array(combinations, np.uint64).reshape(-1, len(sources)).T
    count = rows - edges.shape[1]
    columns = [_random(random, type_, count) for type_ in sources]
    near = random.random(count) < 0.5
    for number, type_ in enumerate(sources[1:], 1):
        if type_ == sources[0] and type_[0] == "f" and type_ != "f16x2":
            noise = random.integers(0, 1 << (bits_of(type_) // 3), count, np.uint64)
            sign = random.integers(0, 2, count, np.uint64) << np.uint64(bits_of(type_) - 1)
            columns[number] = np.where(near, columns[0] ^ noise ^ sign, columns[number])
    return np.concatenate([edges, np.array(columns)], axis=1)


def _random(random: np.random.Generator, type_: str, count: int) -> NDArray[np.uint64]:
    """Return `count` random values of a type: bits at random, values of about 1, and values of an edge's exponent."""
    bits = bits_of(type_)
    if type_ == "pred":
        return random.integers(0, 2, count, np.uint64)
    if type_ in ("u32", "s32", "s64"):
        return random.choice(np.array(_EDGES[type_], np.uint64), count)
    anything = random.integers(0, (1 << bits) - 1, count, np.uint64, endpoint=True)
    if type_[0] == "b" and type_ not in ("bf16", "bf16x2"):
        return anything >> random.integers(0, bits, count, np.uint64)
    ordinary = random.normal(0, 1, count) * np.exp2(random.integers(-6, 7, count))
    floats = {"f32": np.float32, "f64": np.float64}
    if type_ in floats:
        values = ordinary.astype(floats[type_]).view(f"u{bits // 8}").astype(np.uint64)
    else:
        halves = [_half_bits(type_, ordinary), _half_bits(type_, random.normal(0, 4, count))]
        values = halves[0] | halves[1] << np.uint64(16) if bits == 32 else halves[0]
    return np.where(random.random(count) < 0.3, anything, values)


def _half_bits(type_: str, values: NDArray[np.float64]) -> NDArray[np.uint64]:
    if type_.startswith("b"):
        return values.astype(np.float32).view(np.uint32).astype(np.uint64) >> np.uint64(16)
    return values.astype(np.float16).view(np.uint16).astype(np.uint64)
