"""Defines the functions of MUFU, which the hardware approximates by tables and interpolation.

The tables are not published, so the correctly rounded value stands for each result. This is a known deviation, and
`validate/deviations.md` says how far an H200 is from it. The PTX ISA bounds the error: RCP 1 unit in the last
place, RSQ 2^-22.9 relative, SQRT 2^-23 relative, EX2 2 units, LG2 2^-22 absolute or relative, SIN and COS 2^-20.5
absolute, TANH 2^-11 relative.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.conversion import narrowed
from gemmsim.isa.semantics.half import brain_to_single, half_to_single, single_to_brain, single_to_half
from gemmsim.isa.semantics.registry import f32, imm, op, u32
from gemmsim.isa.semantics.rounding import TRUNC
from gemmsim.isa.semantics.single import canonical, flush


def _mufu(name: str, formula: Callable[[Lanes], Lanes]) -> None:
    # The function unit flushes subnormal numbers, with or without .FTZ. Where PTX does not want that, the compiler
    # scales the operands.
    def mufu(a: f32) -> f32:
        return flush(canonical(formula(flush(a))))

    op(mufu, f"mufu_{name}")


def _turns(x: Lanes) -> Lanes:
    """Return x, in turns, less the nearest whole number: float64 from -1/2 to 1/2; NaN for infinities."""
    wide = x.convert("f64")
    return wide - wide.function("rint")


def _sine(x: Lanes) -> Lanes:
    """MUFU.SIN: the sine of x turns, since the compiler has divided the argument by 2 pi."""
    turns = _turns(x)
    # Beyond a quarter turn the angle is mirrored, so that whole and half turns give exactly 0.
    size = (turns < 0).select(turns.lift(0.0) - turns, turns)
    mirrored = (size > 0.25).select(size.lift(0.5) - size, size)
    value = (mirrored * (2 * math.pi)).function("sin").convert("f32")
    # The sign is that of x, once more inverted in the second half of a turn: of zeros, too.
    turned = _second_half(x) ^ (x.bitcast("s32") < 0)
    magnitude = value.bitcast("u32") & 0x7FFFFFFF
    signed = turned.select(magnitude | 0x80000000, magnitude).bitcast("f32")
    return x.eq(0).select(x, value.ne(value).select(value, signed))


def _second_half(x: Lanes) -> Lanes:
    """Return whether |x|, in turns, lies in the second half of a turn."""
    wide = x.convert("f64")
    size = (wide < 0).select(wide.lift(0.0) - wide, wide)
    return size - size.function("floor") >= 0.5


def _cosine(x: Lanes) -> Lanes:
    """MUFU.COS: the cosine of x turns, as the sine of a quarter turn less them."""
    turns = _turns(x)
    size = (turns < 0).select(turns.lift(0.0) - turns, turns)
    return ((size.lift(0.25) - size) * (2 * math.pi)).function("sin").convert("f32")


def _tanh_double(x: Lanes) -> Lanes:
    wide = x.convert("f64")
    power = (wide * (2 / math.log(2))).function("exp2")  # e^2x
    infinite = power > 2.0**100
    ratio = (power - 1.0) / (power + 1.0)
    # Near 0 the difference loses digits; there two terms of the series are exact enough.
    near_zero = (wide < 2.0**-10) & (wide > -(2.0**-10))
    series = wide - wide * wide * wide * (1 / 3)
    value = near_zero.select(series, infinite.select(wide.lift(1.0), ratio))
    return x.eq(0).select(wide, value)


_mufu("rcp", lambda a: a.lift(1) / a)
_mufu("rsq", lambda a: a.lift(1) / a.function("sqrt"))
_mufu("sqrt", lambda a: a.function("sqrt"))
_mufu("ex2", lambda a: a.function("exp2"))
_mufu("lg2", lambda a: a.function("log2"))
_mufu("sin", _sine)
_mufu("cos", _cosine)


@op
def mufu_tanh(a: f32) -> f32:
    """MUFU.TANH, which keeps subnormal numbers, unlike the other functions."""
    return canonical(_tanh_double(a).convert("f32"))


def _exp2_double(x: Lanes) -> Lanes:
    wide = x.convert("f64")
    low = (wide > -500.0).select(wide, wide.lift(-500.0))
    return (low < 500.0).select(low, wide.lift(500.0)).function("exp2")


def _mufu_half(name: str, formula: Callable[[Lanes], Lanes], bits: int, smallest: float) -> None:
    """Register MUFU.NAME.F16 and .BF16: a function of the low half of a register, or with `high` of its high half.

    The H200's results are those of a value rounded to `bits` bits and then cut off to a half: all of EX2, and 97 % of
    TANH for halves and 99 % for bf16 (`gemmsim-validate opcodes`).

    smallest  bf16 results below it become 0
    """
    kinds = (("f16", half_to_single, single_to_half, 65536.0), ("bf16", brain_to_single, single_to_brain, math.inf))
    for kind, widen, narrow, overflow in kinds:
        least = smallest if kind == "bf16" else 0.0
        op(_of_half(formula, (widen, narrow), bits, (least, overflow)), f"mufu_{name}_{kind}")


def _of_half(
    formula: Callable[[Lanes], Lanes],
    conversions: tuple[Callable[[Lanes], Lanes], Callable[[Lanes], Lanes]],
    bits: int,
    limits: tuple[float, float],
) -> Callable[..., Lanes]:
    widen, narrow = conversions
    least, overflow = limits

    def mufu(a: u32, high: imm) -> u32:
        x = widen(high.ne(0).select(a >> 16, a & 0xFFFF))
        exact = formula(x)
        split = exact * (2.0 ** (53 - bits) + 1.0)  # Veltkamp's splitting rounds a double to fewer bits
        value = (split - (split - exact)).convert("f32")
        magnitude = (value < 0).select(value.lift(0.0) - value, value)
        half = narrowed(value, a.lift(TRUNC), widen, narrow)
        infinity = narrow(value.lift(math.inf))
        half = (magnitude < least).select(half & 0x8000, (magnitude >= overflow).select(infinity, half))
        return x.ne(x).select(a.lift(0x7FFF), half)

    return mufu


_mufu_half("ex2", _exp2_double, 22, 2.0**-126)
_mufu_half("tanh", _tanh_double, 18, 0.0)


def _double_from(high: Lanes) -> Lanes:
    """Return the float64 with this high word, a zero low word, and a zero in place of a subnormal number."""
    kept = (high & 0x7FF00000).eq(0).select(high & 0x80000000, high)
    return (kept.convert("u64") << 32).bitcast("f64")


# What RCP64H and RSQ64H add to the low word before they cut it off, as far as an H200's results tell: 98 % of them, the
# others are one unit of the high word away.
_BIAS_64H = 0x0F000000


def _high_word(x: Lanes) -> Lanes:
    exact = x.bitcast("u64")
    biased = (exact & 0x7FF0000000000000).eq(0x7FF0000000000000).select(exact, exact + _BIAS_64H)
    bits = (biased >> 32).convert("u32")
    flushed = (bits & 0x7FF00000).eq(0).select(bits & 0x80000000, bits)
    return x.ne(x).select(bits.lift(0x7FFFFFFF), flushed)


@op
def mufu_rcp64h(a: u32) -> u32:
    """MUFU.RCP64H: the high word of a double's reciprocal from its high word, from which Newton's method starts."""
    x = _double_from(a)
    return _high_word(x.lift(1.0) / x)


@op
def mufu_rsq64h(a: u32) -> u32:
    """MUFU.RSQ64H: the high word of the reciprocal square root of a double from its high word."""
    x = _double_from(a)
    return _high_word(x.lift(1.0) / x.function("sqrt"))
