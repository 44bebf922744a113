"""Packed half precision. Halves are widened to float32 by integer arithmetic, because not every CPU converts them."""

from __future__ import annotations

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import imm, op, u32


def half_to_single(h: Lanes) -> Lanes:
    """IEEE binary16 bits (in a u32) to float32, exactly."""
    sign = (h & 0x8000) << 16
    exponent, fraction = (h >> 10) & 0x1F, h & 0x3FF
    normal = (((exponent + 112) << 23) | (fraction << 13)).bitcast("f32")
    subnormal = fraction.convert("f32") * 2.0**-24
    special = ((fraction << 13) | 0x7F800000).bitcast("f32")
    magnitude = exponent.eq(0).select(subnormal, exponent.eq(31).select(special, normal))
    return (magnitude.bitcast("u32") | sign).bitcast("f32")


def single_to_half(x: Lanes) -> Lanes:
    """float32 to IEEE binary16 bits, round to nearest even."""
    bits = x.bitcast("u32")
    sign, magnitude = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1)
    normal = (rounded >> 13) - (112 << 10)
    normal = (magnitude >= 0x477FF000).select(bits.lift(0x7C00), normal)  # 65520 and above
    # Below 2^-14 adding 2^-1 * 2^-... lines the binary16 subnormal grid up with float32's last bit, so the addition rounds.
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


def _packed(name: str, widen: object, narrow: object, arity: int) -> None:
    """Register an operation on two halves. Sources arrive with both halves in place, swizzles applied by `half_source`."""

    def lane(formula: object, *args: Lanes) -> Lanes:
        low = narrow(formula(*(widen(a & 0xFFFF) for a in args)))  # type: ignore[operator]
        high = narrow(formula(*(widen(a >> 16) for a in args)))  # type: ignore[operator]
        return (high << 16) | low

    if arity == 2:

        def hadd2(a: u32, b: u32) -> u32:
            return lane(lambda x, y: x + y, a, b)

        def hmul2(a: u32, b: u32) -> u32:
            return lane(lambda x, y: x * y, a, b)

        op(hadd2, f"hadd2_{name}")
        op(hmul2, f"hmul2_{name}")
    else:

        def hfma2(a: u32, b: u32, c: u32) -> u32:
            # The product of two halves is exact in float32; a float64 sum makes one rounding to float32 innocuous.
            def fma(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
                exact = x.convert("f64") * y.convert("f64") + z.convert("f64")
                return _round_to_odd(exact)

            return lane(fma, a, b, c)

        op(hfma2, f"hfma2_{name}")


def _round_to_odd(x: Lanes) -> Lanes:
    """float64 to float32 truncated, with the last bit set where anything was lost: a later rounding is then correct."""
    near = x.convert("f32")
    bits = near.bitcast("u32")
    back = near.convert("f64")
    inexact = back.ne(x) & x.eq(x)
    positive = x.bitcast("s64") >= 0
    above = positive.select(back > x, back < x)
    toward_zero = (inexact & above).select(bits - 1, bits)
    return inexact.select(toward_zero | 1, bits).bitcast("f32")


for _name, _widen, _narrow in (("f16", half_to_single, single_to_half), ("bf16", brain_to_single, single_to_brain)):
    _packed(_name, _widen, _narrow, 2)
    _packed(_name, _widen, _narrow, 3)


@op
def half_source(a: u32, low: imm, high: imm, flip: imm) -> u32:
    """Pick the halves of an operand (H0_H0, H1_H1, H0_H1) and apply its sign bits."""
    first = low.ne(0).select(a >> 16, a & 0xFFFF)
    second = high.ne(0).select(a >> 16, a & 0xFFFF)
    return ((second << 16) | first) ^ flip
