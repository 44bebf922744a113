"""Defines what packed half precision opcodes compute. Integer arithmetic widens halves to float32, because not every
CPU can convert them."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import imm, op, u32


def half_to_single(h: Lanes) -> Lanes:
    """Convert the bits of an IEEE binary16, in the low half of a u32, to float32. The conversion is exact."""
    sign = (h & 0x8000) << 16
    exponent, fraction = (h >> 10) & 0x1F, h & 0x3FF
    normal = (((exponent + 112) << 23) | (fraction << 13)).bitcast("f32")
    subnormal = fraction.convert("f32") * 2.0**-24
    special = ((fraction << 13) | 0x7F800000).bitcast("f32")
    magnitude = exponent.eq(0).select(subnormal, exponent.eq(31).select(special, normal))
    return (magnitude.bitcast("u32") | sign).bitcast("f32")


def single_to_half(x: Lanes) -> Lanes:
    """Convert a float32 to the bits of an IEEE binary16, rounded to nearest even."""
    bits = x.bitcast("u32")
    sign, magnitude = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1)
    normal = (rounded >> 13) - (112 << 10)
    normal = (magnitude >= 0x477FF000).select(bits.lift(0x7C00), normal)  # 65520 and above
    # Below 2^-14, 0.5 is added: the last bit of float32 is then that of a binary16 subnormal, so the addition rounds.
    grid = (magnitude.bitcast("f32") + 0.5).bitcast("u32") - 0x3F000000
    small = (magnitude < 0x38800000).select(grid, normal)
    nan = (magnitude > 0x7F800000).select(bits.lift(0x7FFF), small)
    return (magnitude > 0x7F800000).select(nan, nan | sign)


def brain_to_single(h: Lanes) -> Lanes:
    return ((h & 0xFFFF) << 16).bitcast("f32")


def single_to_brain(x: Lanes) -> Lanes:
    bits = x.bitcast("u32")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return ((bits & 0x7FFFFFFF) > 0x7F800000).select(bits.lift(0x7FFF), rounded)


def _packed(name: str, widen: Callable[[Lanes], Lanes], narrow: Callable[[Lanes], Lanes]) -> None:
    """Register `hfma2_NAME`: a * b + c on both halves of a register, which `widen` and `narrow` convert.

    HADD2 is lowered to a * 1 + b and HMUL2 to a * b + -0, which give zeros of the same signs, too.
    """

    def lane(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
        # The product of two halves is exact in float64. The sum is rounded to odd, so that the rounding to a half is
        # the only one that counts.
        product, addend = widen(x).convert("f64") * widen(y).convert("f64"), widen(z).convert("f64")
        return narrow(round_to_odd(*two_sum(product, addend)))

    def hfma2(a: u32, b: u32, c: u32) -> u32:
        return (lane(a >> 16, b >> 16, c >> 16) << 16) | lane(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF)

    op(hfma2, f"hfma2_{name}")


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Return the rounded sum a + b, and its error: exact sum minus rounded sum (Knuth)."""
    total = a + b
    there = total - a
    return total, (a - (total - there)) + (b - there)


def round_to_odd(total: Lanes, error: Lanes) -> Lanes:
    """Return total + error as float32, rounded to odd: truncated, with the last bit set where truncation lost
    something."""
    near = total.convert("f32")
    bits, back = near.bitcast("u32"), near.convert("f64")
    positive = total.bitcast("s64") >= 0
    over = (back > total) | (back.eq(total) & (error < 0))
    under = (back < total) | (back.eq(total) & (error > 0))
    beyond = positive.select(over, under)
    return (over | under).select(beyond.select(bits - 1, bits) | 1, bits).bitcast("f32")


def _flushed_half(x: Lanes) -> Lanes:
    """Convert a float32, rounded to odd, to a half; with a zero in place of a result below the least normal half.

    What counts is the result rounded to eleven bits, whatever its exponent: from 2^-14 - 2^-26 on it is 2^-14.
    """
    bits = x.bitcast("u32")
    return ((bits & 0x7FFFFFFF) < 0x387FF000).select((bits >> 16) & 0x8000, single_to_half(x))


def _flushed_single(h: Lanes) -> Lanes:
    return half_to_single((h & 0x7C00).eq(0).select(h & 0x8000, h))


_packed("f16", half_to_single, single_to_half)
_packed("f16_ftz", _flushed_single, _flushed_half)
_packed("bf16", brain_to_single, single_to_brain)


@op
def half_source(a: u32, low: imm, high: imm) -> u32:
    """Pick the halves of an operand that its suffix H0_H0, H1_H1 or H0_H1 names."""
    first = low.ne(0).select(a >> 16, a & 0xFFFF)
    second = high.ne(0).select(a >> 16, a & 0xFFFF)
    return (second << 16) | first
