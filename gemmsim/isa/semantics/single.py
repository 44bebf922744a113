"""Defines what single precision opcodes compute: FFMA, FADD, FMUL, FMNMX, FSEL, MUFU. With .FTZ they flush subnormal
numbers to zero."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.half import two_sum
from gemmsim.isa.semantics.registry import f32, imm, op, pred

CANONICAL_NAN = 0x7FFFFFFF  # what NVIDIA GPUs return for every NaN result (PTX ISA, "Floating-Point Instructions")


def flush(x: Lanes) -> Lanes:
    """Return x, with a zero of the same sign in place of a subnormal number."""
    bits = x.bitcast("u32")
    return (bits & 0x7F800000).eq(0).select(bits & 0x80000000, bits).bitcast("f32")


def canonical(x: Lanes) -> Lanes:
    bits = x.bitcast("u32")
    return ((bits & 0x7FFFFFFF) > 0x7F800000).select(bits.lift(CANONICAL_NAN), bits).bitcast("f32")


def _forms(name: str, types: int, formula: Callable[..., Lanes]) -> None:
    """Register `formula`, of `types` operands (two or three), as `name` and, flushing subnormals, as `name_ftz`."""

    def plain(*args: Lanes) -> Lanes:
        return canonical(formula(*args))

    def flushing(*args: Lanes) -> Lanes:
        return flush(canonical(formula(*(flush(a) for a in args))))

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
_forms("fmul", 2, lambda a, b: a * b)
_forms("ffma", 3, lambda a, b, c: a.fma(b, c))


@op
def saturate(x: f32) -> f32:
    """Clamp x to [0, 1], as the modifier .SAT asks. NaN gives 0."""
    low = (x > 0).select(x, x.lift(0))
    return (low < 1).select(low, x.lift(1))


@op
def ffma_directed(a: f32, b: f32, c: f32, mode: imm) -> f32:
    """FFMA rounded down (1), up (2) or to zero (3), which the compiler's slow paths of division and square root need.

    The product is exact in float64. The error of the sum says on which side of the sum the true value lies.
    """
    product, addend = a.convert("f64") * b.convert("f64"), c.convert("f64")
    total, error = two_sum(product, addend)
    near = total.convert("f32")
    back, bits = near.convert("f64"), near.bitcast("u32")
    over = (back > total) | (back.eq(total) & (error < 0))
    under = (back < total) | (back.eq(total) & (error > 0))
    negative = bits.bitcast("s32") < 0
    toward_zero, outward = bits - 1, bits + 1
    wants_less, wants_more = mode.eq(1) | (mode.eq(3) & ~negative), mode.eq(2) | (mode.eq(3) & negative)
    moved = (wants_less & over).select(negative.select(outward, toward_zero), bits)
    moved = (wants_more & under).select(negative.select(toward_zero, outward), moved)
    exact_zero = total.eq(0) & error.eq(0) & mode.eq(1) & ((product.bitcast("s64") < 0) | (addend.bitcast("s64") < 0))
    moved = exact_zero.select(bits.lift(0x80000000), moved)  # x - x is -0 when rounding down
    return canonical(moved.bitcast("f32"))


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
def fmnmx(a: f32, b: f32, smaller: pred, ftz: imm) -> f32:
    """FMNMX: minNum or maxNum of IEEE-754. Where one operand is NaN the other is the result; -0 is below +0."""
    a = ftz.ne(0).select(flush(a), a)
    b = ftz.ne(0).select(flush(b), b)
    a_less = (a < b) | (a.eq(b) & (a.bitcast("s32") < b.bitcast("s32")))
    least, most = a_less.select(a, b), a_less.select(b, a)
    picked = smaller.select(least, most)
    picked = a.ne(a).select(b, b.ne(b).select(a, picked))
    return canonical(picked)


@op
def fsel(a: f32, b: f32, p: pred, ftz: imm) -> f32:
    chosen = p.select(a, b)
    return ftz.ne(0).select(flush(chosen), chosen)


@op
def flush_f32(a: f32) -> f32:
    """Flush a subnormal number to zero. Lowering puts this operation before comparisons and conversions with .FTZ."""
    return flush(a)


def _mufu(name: str, formula: Callable[[Lanes], Lanes]) -> None:
    # The function unit flushes subnormal numbers, with or without .FTZ. Where PTX does not want that, the compiler
    # scales the operands.
    def mufu(a: f32) -> f32:
        return flush(canonical(formula(flush(a))))

    op(mufu, f"mufu_{name}")


# The hardware's tables are good to about one unit in the last place (CUDA C++ Programming Guide, intrinsic functions);
# here the correctly rounded value stands for them (a known deviation).
_mufu("rcp", lambda a: a.lift(1) / a)
_mufu("rsq", lambda a: a.lift(1) / a.function("sqrt"))
_mufu("sqrt", lambda a: a.function("sqrt"))
_mufu("ex2", lambda a: a.function("exp2"))
_mufu("lg2", lambda a: a.function("log2"))
