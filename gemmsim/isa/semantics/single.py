"""Defines what single precision opcodes compute: FFMA, FADD, FMUL, FMNMX, FSEL. With .FTZ they flush subnormal numbers
to zero."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import f32, imm, op, pred, u32

CANONICAL_NAN = 0x7FFFFFFF  # what NVIDIA GPUs return for every NaN result (PTX ISA, "Floating-Point Instructions")


def flush(x: Lanes) -> Lanes:
    """Return x, with a zero of the same sign in place of a subnormal number."""
    bits = x.bitcast("u32")
    return (bits & 0x7F800000).eq(0).select(bits & 0x80000000, bits).bitcast("f32")


def canonical(x: Lanes) -> Lanes:
    bits = x.bitcast("u32")
    return ((bits & 0x7FFFFFFF) > 0x7F800000).select(bits.lift(CANONICAL_NAN), bits).bitcast("f32")


SCALE, _LEAST_SCALED = 2.0**40, 0x14800000  # and 2.0**40 times the least normal number, 2.0**-86, as its bits


def flush_result(x: Lanes, scaled: Lanes) -> Lanes:
    """Return x, with a zero of the same sign where the result is below the least normal number.

    What counts is the result rounded to 24 bits, whatever its exponent (H200, `gemmsim-validate opcodes`): x itself may
    be the least normal number, since it was rounded to fewer bits. So it is told by `scaled`, the same result computed
    from operands that were multiplied by `SCALE`.
    """
    bits = x.bitcast("u32")
    small = (scaled.bitcast("u32") & 0x7FFFFFFF) < _LEAST_SCALED
    return small.select(bits & 0x80000000, bits).bitcast("f32")


def _forms(name: str, types: int, formula: Callable[..., Lanes], scaled: Callable[..., Lanes] | None = None) -> None:
    """Register `formula`, of `types` operands (two or three), as `name` and, flushing subnormals, as `name_ftz`.

    scaled  computes `SCALE` times the result; None where results below the least normal number are exact
    """

    def plain(*args: Lanes) -> Lanes:
        return canonical(formula(*args))

    def flushing(*args: Lanes) -> Lanes:
        given = [flush(a) for a in args]
        result = canonical(formula(*given))
        return flush(result) if scaled is None else flush_result(result, scaled(*given))

    for compute, suffix in ((plain, ""), (flushing, "_ftz")):
        if types == 2:
            op(_of_two(compute), name + suffix)
        else:
            op(_of_three(compute), name + suffix)


def _of_two(compute: Callable[..., Lanes]) -> Callable[..., Lanes]:
    def two(a: f32, b: f32) -> f32:
        return compute(a, b)

    return two


def _of_three(compute: Callable[..., Lanes]) -> Callable[..., Lanes]:
    def three(a: f32, b: f32, c: f32) -> f32:
        return compute(a, b, c)

    return three


_forms("fadd", 2, lambda a, b: a + b)
_forms("fmul", 2, lambda a, b: a * b, lambda a, b: (a * SCALE) * b)
_forms("ffma", 3, lambda a, b, c: a.fma(b, c), lambda a, b, c: (a * SCALE).fma(b, c * SCALE))


@op
def saturate(x: f32) -> f32:
    """Clamp x to [0, 1], as the modifier .SAT asks. NaN gives 0."""
    low = (x > 0).select(x, x.lift(0))
    return (low < 1).select(low, x.lift(1))


@op
def fchk(a: f32, b: f32) -> pred:
    """FCHK: whether a / b needs the slow path, because the quotient or an intermediate may leave the normal range.

    The hardware's bounds are not documented. The ones here are sufficient for the compiler's sequence, and both paths
    round correctly: only the choice of the path can differ, for operands beyond 2^100 and below 2^-100.
    """

    def exponent(x: Lanes) -> Lanes:
        return ((x.bitcast("u32") >> 23) & 0xFF).bitcast("s32")

    x, y = exponent(a), exponent(b)
    usual = (x > 27) & (x < 227) & (y > 27) & (y < 227)
    return ~usual | (x - y > 100) | (y - x > 100)


@op
def fmnmx(a: f32, b: f32, smaller: pred, ftz: imm, nan: imm) -> f32:
    """FMNMX: minNum or maxNum of IEEE-754. Where one operand is NaN the other is the result or, with .NAN, NaN; -0 is
    below +0."""
    a = ftz.ne(0).select(flush(a), a)
    b = ftz.ne(0).select(flush(b), b)
    a_less = (a < b) | (a.eq(b) & (a.bitcast("s32") < b.bitcast("s32")))
    least, most = a_less.select(a, b), a_less.select(b, a)
    picked = smaller.select(least, most)
    keep = nan.ne(0)
    picked = a.ne(a).select(keep.select(a, b), b.ne(b).select(keep.select(b, a), picked))
    return canonical(picked)


@op
def xor_signs(value: u32, a: u32, b: u32) -> u32:
    """Replace the sign of `value` by the exclusive or of those of a and b, as .XORSIGN asks. NaN stays as it is."""
    return ((value & 0x7FFFFFFF) > 0x7F800000).select(value, (value & 0x7FFFFFFF) | ((a ^ b) & 0x80000000))


@op
def fsel(a: f32, b: f32, p: pred, ftz: imm) -> f32:
    chosen = p.select(a, b)
    return ftz.ne(0).select(flush(chosen), chosen)


@op
def flush_f32(a: f32) -> f32:
    """Flush a subnormal number to zero. Lowering puts this operation before comparisons and conversions with .FTZ."""
    return flush(a)


@op
def order_key(x: f32, last: imm) -> u32:
    """Return an integer that orders float32 as numbers, -0 before 0. NaN is the last where `last`, else the first."""
    bits = x.bitcast("u32")
    key = (bits >> 31).ne(0).select(~bits, bits | 0x80000000)
    end = last.ne(0).select(bits.lift(0xFFFFFFFF), bits.lift(0))
    return x.ne(x).select(end, key)


@op
def number_of_key(key: u32) -> u32:
    """Return the float32 of which `order_key` made this key."""
    bits = (key >> 31).ne(0).select(key & 0x7FFFFFFF, ~key)
    return key.eq(0).select(key.lift(0x7FFFFFFF), bits)
