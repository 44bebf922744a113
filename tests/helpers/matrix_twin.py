"""A slow readable twin of the matrix instructions: fragments as the PTX ISA's tables place them, element by element.

For each type it is written down which row and column element i of a lane is, and sums are those of Python's integers or
of float64. The executor uses one rule for all types instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

LANES = range(32)
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}


def e4m3(byte: int) -> float:
    """1 sign, 4 exponent (bias 7) and 3 fraction bits; only all ones is no number."""
    exponent, fraction = byte >> 3 & 15, byte & 7
    if byte & 127 == 127:
        return float("nan")
    value = fraction * 2.0**-9 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -value if byte & 128 else value


def e5m2(byte: int) -> float:
    """The upper half of a binary16."""
    return float(np.array([byte << 8], np.uint16).view(np.float16)[0])


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


DECODE: dict[str, Callable[[int], float]] = {
    "f16": lambda v: float(np.array([v], np.uint16).view(np.float16)[0]),
    "bf16": lambda v: float(np.array([v << 16], np.uint32).view(np.float32)[0]),
    "tf32": lambda v: float(np.array([v & 0xFFFFE000], np.uint32).view(np.float32)[0]),
    "e4m3": e4m3,
    "e5m2": e5m2,
    "s8": lambda v: _signed(v, 8),
    "u8": lambda v: v,
    "s4": lambda v: _signed(v, 4),
    "u4": lambda v: v,
    "b1": lambda v: v,
}


def _a_place(bits: int, rows: int, i: int, lane: int) -> tuple[int, int]:
    """Row and column of element a_i of a lane. PTX ISA: "row = groupID for ai where ...", by width of the elements."""
    group, thread = lane >> 2, lane % 4
    if bits == 32:
        return group + (8 if i in (1, 3) else 0), thread + (4 if i >= 2 else 0)
    if bits == 16:
        return group + (8 if i in (2, 3, 6, 7) else 0), thread * 2 + (i & 1) + (8 if i >= 4 else 0)
    each = 32 // bits  # of a register; registers go down the rows first, then to the right
    half = rows == 16 and i // each % 2 == 1
    right = i // (each * (rows // 8))
    return group + (8 if half else 0), thread * each + i % each + 4 * each * right


def _b_place(bits: int, i: int, lane: int) -> tuple[int, int]:
    group, thread = lane >> 2, lane % 4
    if bits == 32:
        return thread + 4 * i, group
    if bits == 16:
        return thread * 2 + (i & 1) + 8 * (i // 2), group
    each = 32 // bits
    return thread * each + i % each + 4 * each * (i // each), group


def _element(words: NDArray[np.uint32], bits: int, i: int, lane: int) -> int:
    each = 32 // bits
    return int(words[lane, i // each]) >> bits * (i % each) & (1 << bits) - 1


def matrix_a(words: NDArray[np.uint32], kind: str, rows: int, depth: int) -> NDArray:
    """A from the words [32, registers] of the lanes."""
    a = np.zeros((rows, depth), object)
    for lane in LANES:
        for i in range(rows * depth // 32):
            a[_a_place(BITS[kind], rows, i, lane)] = DECODE[kind](_element(words, BITS[kind], i, lane))
    return a


def matrix_b(words: NDArray[np.uint32], kind: str, depth: int) -> NDArray:
    b = np.zeros((depth, 8), object)
    for lane in LANES:
        for i in range(8 * depth // 32):
            b[_b_place(BITS[kind], i, lane)] = DECODE[kind](_element(words, BITS[kind], i, lane))
    return b


def c_places(rows: int) -> list[list[tuple[int, int]]]:
    """[lane][i]: row and column of element c_i of a lane."""
    return [
        [(lane >> 2 if i < 2 else (lane >> 2) + 8, lane % 4 * 2 + (i & 1)) for i in range(rows // 4)] for lane in LANES
    ]


def sparse_a(words: NDArray[np.uint32], kind: str, depth: int, metadata: NDArray[np.uint32], selector: int) -> NDArray:
    """Decompress A [16, depth], of which the lanes hold the half that is not zero; the others are None.

    "Sparse matrix storage": one 4-bit field for each chunk of a row. Rows r and r + 8 are described by lanes 4 r to
    4 r + 3. Of 16 and 32 bits: row r by the low, row r + 8 by the high halves; with 4 chunks a row one lane holds all
    fields, with 8 the lanes of a pair hold four each. Of 8 and 4 bits: row r by the words of even lanes, row r + 8 by
    those of odd ones; with 8 chunks a row one pair of lanes holds them, with 16 both pairs.
    """
    held, full = matrix_a(words, kind, 16, depth // 2), np.full((16, depth), None)
    chunk = {"tf32": 2, "s4": 8, "u4": 8}.get(kind, 4)
    chunks = depth // chunk
    lanes = {4: [selector], 8: [2 * selector, 2 * selector + 1], 16: [0, 1, 2, 3]}[chunks]
    narrow = BITS[kind] <= 8
    for row in range(16):
        for n in range(chunks):
            if narrow:
                fields = int(metadata[4 * (row % 8) + lanes[2 * (n // 8) + (row >= 8)]])
                field = fields >> 4 * (n % 8) & 15
            else:
                fields = int(metadata[4 * (row % 8) + lanes[n // 4]]) >> (16 if row >= 8 else 0)
                field = fields >> 4 * (n % 4) & 15
            first, second = field & 3, field >> 2
            if kind == "tf32":
                full[row, 2 * n + {0b0100: 0, 0b1110: 1}[field]] = held[row, n]
            elif chunk == 8:
                for place, pair in ((first, 0), (second, 1)):
                    for j in range(2):
                        full[row, 8 * n + 2 * place + j] = held[row, 4 * n + 2 * pair + j]
            else:
                full[row, 4 * n + first], full[row, 4 * n + second] = held[row, 2 * n], held[row, 2 * n + 1]
    return full


_LEAST_EXPONENT = {"f16": -14, "e5m2": -14, "e4m3": -6}  # of subnormal numbers; -126 for other types, and for zero


def exponent(x: float, kind: str) -> int:
    return max(math.frexp(x)[1] - 1, _LEAST_EXPONENT.get(kind, -126)) if x else -126


def cut_sum(pairs: list[tuple[float, float]], c: float, kinds: tuple[str, str, str], places: int = 25) -> float:
    """The sum of products and c as a tensor core computes it, before the result is rounded to its type.

    kinds   types of the first factors, of the second ones, and of c
    places  the terms are cut so many binary places below the largest exponent; an H200's HMMA cuts 25

    The exponent of a product is the sum of those of its factors, so that it may be one too small. What remains of the
    terms is added exactly.
    """
    if not all(map(math.isfinite, [c, *(x for pair in pairs for x in pair)])):
        with np.errstate(invalid="ignore"):
            return float(sum((np.float64(x) * np.float64(y) for x, y in pairs), np.float64(c)))
    terms = [(Fraction(x) * Fraction(y), exponent(x, kinds[0]) + exponent(y, kinds[1])) for x, y in pairs]
    terms.append((Fraction(c), exponent(c, kinds[2])))
    unit = Fraction(2) ** (max(exponent for _, exponent in terms) - places)
    return float(sum(math.trunc(term / unit) for term, _ in terms) * unit)


def cut_to_single(value: float, fraction_bits: int = 23) -> int:
    """The bits of the float32 next to `value` on the side of zero, of which so many bits of the fraction are kept."""
    if math.isnan(value):
        return 0x7FFFFFFF
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if abs(float(near)) > abs(value) and abs(value) < 2.0**128:
        near = np.nextafter(near, np.float32(0))
    return int(near.view(np.uint32)) >> (23 - fraction_bits) << (23 - fraction_bits)


def to_half(value: float) -> int:
    """The bits of the binary16 next to `value`."""
    with np.errstate(over="ignore"):
        return 0x7FFF if math.isnan(value) else int(np.float16(value).view(np.uint16))


def product(a: NDArray, b: NDArray) -> NDArray:
    """A [rows, depth] times B [depth, 8], without the elements of A that are None."""
    total = np.zeros((len(a), 8), object)
    for row in range(len(a)):
        for column in range(8):
            terms = [x * y for x, y in zip(a[row], b[:, column], strict=True) if x is not None]
            total[row, column] = sum(terms)
    return total
