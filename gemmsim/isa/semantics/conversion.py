"""Defines conversions between integers and floats, and rounding: I2F, F2I, F2F, F2FP, FRND.

The rounding modes are those of `rounding`.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.double import repeat_nan
from gemmsim.isa.semantics.half import brain_to_single, half_to_single, single_to_brain, single_to_half
from gemmsim.isa.semantics.integer import sext, zext
from gemmsim.isa.semantics.registry import f32, f64, imm, op, s32, u32, u64
from gemmsim.isa.semantics.rounding import CEIL, FLOOR, NEAREST, ODD, TRUNC, round_toward, rounded_to_single
from gemmsim.isa.semantics.single import canonical


@op
def extend(a: u32, signed: imm) -> u64:
    return signed.ne(0).select(sext(a), zext(a))


@op
def bit_field(a: u32, low: imm, bits: imm, signed: imm) -> u32:
    """Pick `bits` bits of a, from bit `low` on, extended to 32: what the suffixes .B0 to .B3, .H0 and .H1 stand for."""
    up = a.lift(32) - bits
    wide = (a >> low) << up
    return signed.ne(0).select((wide.bitcast("s32") >> up).bitcast("u32"), wide >> up)


@op
def i2f_s32(a: s32) -> f32:
    return a.convert("f32")


@op
def i2f_u32(a: u32) -> f32:
    return a.convert("f32")


@op
def i2f_64(a: u64, signed: imm, mode: imm) -> f32:
    """Convert a 64-bit integer to float32 in any rounding mode. The nearest float32 is at most one step from the
    result."""
    negative = signed.ne(0) & (a.bitcast("s64") < 0)
    magnitude = negative.select(a.lift(0) - a, a)
    near = magnitude.convert("f32")
    bits = near.bitcast("u32")
    overflow = near >= 2.0**64
    back = overflow.select(near.lift(0), near).convert("u64")
    over = overflow | (back > magnitude)
    under = ~overflow & (back < magnitude)
    away = mode.eq(FLOOR) & negative | mode.eq(CEIL) & ~negative
    toward_zero = over.select(bits - 1, bits)
    outward = under.select(bits + 1, bits)
    odd = (over | under).select(toward_zero | 1, bits)
    directed = away.select(outward, mode.eq(ODD).select(odd, toward_zero))
    rounded = mode.eq(NEAREST).select(bits, directed)
    return negative.select(rounded | 0x80000000, rounded).bitcast("f32")


@op
def i2f_f64(a: u64, signed: imm) -> f64:
    return signed.ne(0).select(a.bitcast("s64").convert("f64"), a.convert("f64"))


@op
def i2f_f64_directed(a: u64, signed: imm, mode: imm) -> f64:
    """Convert a 64-bit integer to float64 in any rounding mode."""
    negative = signed.ne(0) & (a.bitcast("s64") < 0)
    magnitude = negative.select(a.lift(0) - a, a)
    near = magnitude.convert("f64")
    overflow = near >= 2.0**64
    back = overflow.select(near.lift(0), near).convert("u64")
    more, less = overflow | (back > magnitude), ~overflow & (back < magnitude)
    over, under = negative.select(less, more), negative.select(more, less)
    return round_toward(negative.select(near.lift(0.0) - near, near), over, under, mode)


def _rounded(x: Lanes, mode: Lanes) -> Lanes:
    nearest, down = x.function("rint"), x.function("floor")
    up, cut = x.function("ceil"), x.function("trunc")
    return mode.eq(NEAREST).select(nearest, mode.eq(FLOOR).select(down, mode.eq(CEIL).select(up, cut)))


@op
def f2i_32(a: f64, signed: imm, mode: imm, nan: imm) -> u32:
    """Convert to an integer, clamped to the range of its type. NaN gives `nan`: 0 from float32 to 32 bits, else the top
    bit alone (PTX ISA, cvt)."""
    x = _rounded(a, mode)
    is_nan, is_signed = x.ne(x), signed.ne(0)
    low, high = (
        is_signed.select(x.lift(-(2.0**31)), x.lift(0.0)),
        is_signed.select(x.lift(2.0**31 - 1), x.lift(2.0**32 - 1)),
    )
    inside = (x > low).select(x, low)
    inside = (inside < high).select(inside, high)
    value = is_nan.select(x.lift(0.0), inside).convert("s64").bitcast("u64").convert("u32")
    return is_nan.select(nan, value)


@op
def f2i_64(a: f64, signed: imm, mode: imm) -> u64:
    x = _rounded(a, mode)
    magnitude = (x < 0).select(x.lift(0.0) - x, x)
    negative, is_signed = x < 0, signed.ne(0)
    # Values below the limit are converted; the limit itself and what is beyond it is clamped.
    limit = is_signed.select(x.lift(2.0**63), x.lift(2.0**64))
    fits = magnitude < limit
    value = fits.select(magnitude, x.lift(0.0)).convert("u64")
    top, largest = value.lift(1 << 63), is_signed.select(value.lift((1 << 63) - 1), value.lift((1 << 64) - 1))
    positive = fits.select(value, largest)
    below = is_signed.select(fits.select(value.lift(0) - value, top), value.lift(0))
    return x.ne(x).select(top, negative.select(below, positive))


def _narrow_nan(x: Lanes, wide: Lanes) -> Lanes:
    """Return x, or where the float64 `wide` is NaN its sign and the top bits of its fraction, made quiet."""
    bits = wide.bitcast("u64")
    payload = ((bits >> 29) & 0x3FFFFF).convert("u32") | ((bits >> 32).convert("u32") & 0x80000000)
    return wide.ne(wide).select((payload | 0x7FC00000).bitcast("f32"), x)


@op
def f64_to_f32(a: f64) -> f32:
    return _narrow_nan(a.convert("f32"), a)


@op
def f64_to_f32_directed(a: f64, mode: imm) -> f32:
    """Convert float64 to float32 in any rounding mode."""
    return _narrow_nan(rounded_to_single(a, a.lift(0.0), mode), a)


@op
def f32_to_f64(a: f32) -> f64:
    """Convert float32 to float64. NaN keeps its sign and fraction, and becomes quiet."""
    bits = zext(a.bitcast("u32"))
    nan = ((bits & 0x7FFFFF) << 29) | ((bits & 0x80000000) << 32) | 0x7FF8000000000000
    return a.ne(a).select(nan.bitcast("f64"), a.convert("f64"))


@op
def frnd(a: f32, mode: imm) -> f32:
    """FRND: round a float32 to an integral value. NaN becomes the canonical NaN."""
    x = _rounded(a, mode)
    return x.ne(x).select(x.bitcast("u32").lift(0x7FFFFFFF).bitcast("f32"), x)


@op
def frnd_f64(a: f64, mode: imm) -> f64:
    """FRND.F64: round a float64 to an integral value."""
    return repeat_nan(_rounded(a, mode), a)


@op
def nan_to_half(half: u32, a: f64) -> u32:
    """Return `half`, or where the float64 a, which it was made from, is NaN its sign and the top of its fraction."""
    bits = a.bitcast("u64")
    payload = ((bits >> 42) & 0x1FF).convert("u32") | ((bits >> 48).convert("u32") & 0x8000)
    return a.ne(a).select(payload | 0x7E00, half)


@op
def f16_to_f32(a: u32, high: imm) -> f32:
    return half_to_single(high.ne(0).select(a >> 16, a & 0xFFFF))


@op
def bf16_to_f32(a: u32, high: imm) -> f32:
    return brain_to_single(high.ne(0).select(a >> 16, a & 0xFFFF))


@op
def f16_to_f32_canonical(a: u32, high: imm) -> f32:
    """HADD2.F32, which widens a half, and gives the canonical NaN for every NaN."""
    return canonical(half_to_single(high.ne(0).select(a >> 16, a & 0xFFFF)))


@op
def bf16_to_f32_canonical(a: u32, high: imm) -> f32:
    return canonical(brain_to_single(high.ne(0).select(a >> 16, a & 0xFFFF)))


@op
def pack_f16(high: f32, low: f32) -> u32:
    """F2FP.F16.F32.PACK_AB: round two floats to halves, and pack them into one register."""
    return (single_to_half(high) << 16) | single_to_half(low)


@op
def pack_bf16(high: f32, low: f32) -> u32:
    return (single_to_brain(high) << 16) | single_to_brain(low)


def narrowed(x: Lanes, mode: Lanes, widen: Callable[[Lanes], Lanes], narrow: Callable[[Lanes], Lanes]) -> Lanes:
    """Return the bits of a half nearest to x, moved to the neighbour that `mode` asks for."""
    near = narrow(x)
    back = widen(near)
    over, under = back > x, back < x
    negative = (near & 0x8000).ne(0)
    down, up = mode.eq(FLOOR) | (mode.eq(TRUNC) & ~negative), mode.eq(CEIL) | (mode.eq(TRUNC) & negative)
    moved = (down & over).select(negative.select(near + 1, near - 1), near)
    return (up & under).select(negative.select(near - 1, near + 1), moved)


@op
def pack_f16_directed(high: f32, low: f32, mode: imm) -> u32:
    """F2FP.F16.F32.PACK_AB with a rounding mode."""
    parts = [narrowed(x, mode, half_to_single, single_to_half) for x in (high, low)]
    return (parts[0] << 16) | parts[1]


@op
def pack_bf16_directed(high: f32, low: f32, mode: imm) -> u32:
    parts = [narrowed(x, mode, brain_to_single, single_to_brain) for x in (high, low)]
    return (parts[0] << 16) | parts[1]


@op
def to_tf32(a: f32, mode: imm, relu: imm) -> u32:
    """F2FP.TF32: round to the 10 bits of TF32's fraction, to nearest even or to zero. NaN becomes 0x7FFFE000."""
    bits = a.bitcast("u32")
    nearest = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
    rounded = mode.eq(TRUNC).select(bits & 0xFFFFE000, nearest)
    positive = (relu.ne(0) & (bits.bitcast("s32") < 0)).select(bits.lift(0), rounded)
    return a.ne(a).select(bits.lift(0x7FFFE000), positive)
