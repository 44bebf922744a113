"""Defines arithmetic with a rounding mode: FADD, FMUL, FFMA, DADD, DMUL and DFMA with .RM, .RP or .RZ.

The host rounds to nearest. So a result is first rounded to nearest; then it is compared with the exact value and, where
it lies on the wrong side, replaced by its neighbour.
"""

from __future__ import annotations

from gemmsim.isa.lanes import WIDTH_BITS, Lanes
from gemmsim.isa.semantics.double import repeat_nan
from gemmsim.isa.semantics.half import two_sum
from gemmsim.isa.semantics.registry import f32, f64, imm, op
from gemmsim.isa.semantics.single import SCALE, canonical, flush, flush_result

# Rounding modes: nearest even, down, up, to zero, and to odd, after which a second rounding gives what one would.
NEAREST, FLOOR, CEIL, TRUNC, ODD = range(5)
_FAR = 120  # binary places after which a small addend matters by its sign alone: more than twice a float64's fraction


def round_toward(near: Lanes, over: Lanes, under: Lanes, mode: Lanes) -> Lanes:
    """Return the float `near`, which was rounded to nearest, rounded by `mode` in place of that.

    over, under  whether `near` is above or below the exact value; neither where it is exact
    """
    width = WIDTH_BITS[near.type]
    bits = near.bitcast(f"u{width}")
    negative = bits.bitcast(f"s{width}") < 0
    larger, smaller = bits + 1, bits - 1  # by magnitude
    down, up = mode.eq(FLOOR) | (mode.eq(TRUNC) & ~negative), mode.eq(CEIL) | (mode.eq(TRUNC) & negative)
    moved = (down & over).select(negative.select(larger, smaller), bits)
    moved = (up & under).select(negative.select(smaller, larger), moved)
    beyond = negative.select(under, over)
    odd = (over | under).select(beyond.select(smaller, bits) | 1, bits)
    return mode.eq(ODD).select(odd, moved).bitcast(near.type)


def rounded_to_single(value: Lanes, error: Lanes, mode: Lanes) -> Lanes:
    """Round the exact value `value` + `error`, two float64, to float32. `error` is below half a unit of `value`."""
    near = value.convert("f32")
    back = near.convert("f64")
    over = (back > value) | (back.eq(value) & (error < 0))
    under = (back < value) | (back.eq(value) & (error > 0))
    return round_toward(near, over, under, mode)


def _is_negative(x: Lanes) -> Lanes:
    return x.bitcast(f"s{WIDTH_BITS[x.type]}") < 0


def _signed_zero(x: Lanes, exact: Lanes, first: Lanes, second: Lanes, mode: Lanes) -> Lanes:
    """Return the sum x; -0 in its place where `exact` addends of unlike sign cancel and the sum is rounded down."""
    unlike = _is_negative(first) ^ _is_negative(second)
    return (exact & x.eq(0) & unlike & mode.eq(FLOOR)).select(x.lift(-0.0), x)


@op
def ffma_directed(a: f32, b: f32, c: f32, mode: imm, ftz: imm) -> f32:
    """FFMA with a rounding mode. FADD is lowered to a * 1 + b."""
    flushing = ftz.ne(0)
    x, y, z = (flushing.select(flush(v), v) for v in (a, b, c))
    product, addend = x.convert("f64") * y.convert("f64"), z.convert("f64")  # the product is exact
    total, error = two_sum(product, addend)
    result = rounded_to_single(total, error, mode)
    result = _signed_zero(result, total.eq(0) & error.eq(0), product, addend, mode)
    scaled = rounded_to_single(total * SCALE, error * SCALE, mode)
    return canonical(flushing.select(flush_result(result, scaled), result))


@op
def fmul_directed(a: f32, b: f32, mode: imm, ftz: imm) -> f32:
    """FMUL with a rounding mode."""
    flushing = ftz.ne(0)
    x, y = (flushing.select(flush(v), v).convert("f64") for v in (a, b))
    product = x * y
    result = rounded_to_single(product, x.lift(0.0), mode)
    scaled = rounded_to_single(product * SCALE, x.lift(0.0), mode)
    return canonical(flushing.select(flush_result(result, scaled), result))


@op
def dfma_directed(a: f64, b: f64, c: f64, mode: imm, negated: imm) -> f64:
    """DFMA with a rounding mode. DADD is lowered to a * 1 + b."""
    near = a.fma(b, c)
    over, under = _sides(a, b, c, near)
    result = round_toward(near, over, under, mode)
    result = _signed_zero(result, ~(over | under), a * b, c, mode)
    return repeat_nan(result, a, b, c, negated=negated, order=(1, 2, 0))


@op
def dmul_directed(a: f64, b: f64, mode: imm, negated: imm) -> f64:
    """DMUL with a rounding mode."""
    near = a * b
    over, under = _sides(a, b, a.lift(0.0), near)
    return repeat_nan(round_toward(near, over, under, mode), a, b, negated=negated, order=(1, 0))


def _sides(a: Lanes, b: Lanes, c: Lanes, near: Lanes) -> tuple[Lanes, Lanes]:
    """Return whether `near` is above and whether it is below the exact a * b + c, of which it is the nearest float64.

    The exact sum of the product (in two parts), c and -near is computed from values that are scaled by the product's
    exponent, so that nothing underflows. Its sign is right, since each sum but the last leaves no error, or one that is
    added (Boldo and Muller, "Some functions computable with a fused-mac", 2005).
    """
    (x, x_exponent), (y, y_exponent) = _parts(a), _parts(b)
    (z, z_exponent), (n, n_exponent) = _parts(c), _parts(near)
    scale = x_exponent + y_exponent
    distance = z_exponent - scale
    clamped = (distance < -_FAR).select(distance.lift(-_FAR), distance)
    clamped = (clamped > _FAR).select(distance.lift(_FAR), clamped)
    beyond = (distance > _FAR).select(
        distance - _FAR, distance.lift(0)
    )  # then c and near are moved towards the product
    product = x * y
    rest = x.fma(y, product.lift(0.0) - product)
    addend, result = _scaled(z, clamped), _scaled(n, n_exponent - scale - beyond)
    alpha, alpha_error = two_sum(addend, rest)
    beta, beta_error = two_sum(product, alpha)
    gamma, gamma_error = two_sum(beta - result, beta_error)
    difference = gamma + (gamma_error + alpha_error)
    finite = _is_finite(a) & _is_finite(b) & _is_finite(c)
    overflows, inexact = finite & ~_is_finite(near), finite & _is_finite(near) & x.ne(0) & y.ne(0)
    over = (overflows & (near > 0)) | (inexact & (difference < 0))
    under = (overflows & (near < 0)) | (inexact & (difference > 0))
    return over, under


def _parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return a float64 as a fraction from 1 up to 2 with its sign (0 of a zero) and an exponent (s64)."""
    small = (x.bitcast("u64") & (0x7FF << 52)).eq(0)
    bits = small.select(x * 2.0**64, x).bitcast("u64")
    exponent = ((bits >> 52) & 0x7FF).bitcast("s64") - small.select(bits.lift(1023 + 64), bits.lift(1023)).bitcast(
        "s64"
    )
    fraction = ((bits & ~(0x7FF << 52) & 0xFFFFFFFFFFFFFFFF) | (1023 << 52)).bitcast("f64")
    return x.eq(0).select(x.lift(0.0), fraction), exponent


def _scaled(x: Lanes, exponent: Lanes) -> Lanes:
    """Return x * 2**exponent, for exponents (s64) that stay within the normal range; others are clamped to it."""
    low = (exponent > -1000).select(exponent, exponent.lift(-1000))
    inside = (low < 1000).select(low, low.lift(1000))
    return x * ((inside + 1023).bitcast("u64") << 52).bitcast("f64")


def _is_finite(x: Lanes) -> Lanes:
    return (x.bitcast("u64") & (0x7FF << 52)).ne(0x7FF << 52)
