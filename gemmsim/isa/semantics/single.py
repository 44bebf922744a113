"""Single precision: FFMA, FADD, FMUL, FMNMX, FSEL, MUFU, each also flushing subnormals (.FTZ)."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import f32, imm, op, pred

CANONICAL_NAN = 0x7FFFFFFF  # what NVIDIA GPUs return for every NaN result (PTX ISA, "Floating-Point Instructions")


def flush(x: Lanes) -> Lanes:
    """Subnormal to zero of the same sign."""
    bits = x.bitcast("u32")
    return (bits & 0x7F800000).eq(0).select(bits & 0x80000000, bits).bitcast("f32")


def canonical(x: Lanes) -> Lanes:
    bits = x.bitcast("u32")
    return ((bits & 0x7FFFFFFF) > 0x7F800000).select(bits.lift(CANONICAL_NAN), bits).bitcast("f32")


def saturate(x: Lanes) -> Lanes:
    """Clamp to [0, 1]; NaN gives 0."""
    low = (x > 0).select(x, x.lift(0))
    return (low < 1).select(low, x.lift(1))


def _forms(name: str, arity: int, formula: Callable[..., Lanes]) -> None:
    """Register `name`, `name_ftz` and their saturating forms."""
    for suffix, ftz, sat in (("", False, False), ("_ftz", True, False), ("_sat", False, True), ("_ftz_sat", True, True)):

        def compute(*args: Lanes, ftz: bool = ftz, sat: bool = sat) -> Lanes:
            result = canonical(formula(*(flush(a) for a in args) if ftz else args))
            result = flush(result) if ftz else result
            return saturate(result) if sat else result

        if arity == 2:

            def two(a: f32, b: f32, compute: Callable[..., Lanes] = compute) -> f32:
                return compute(a, b)

            _register(two, name + suffix, 2)
        else:

            def three(a: f32, b: f32, c: f32, compute: Callable[..., Lanes] = compute) -> f32:
                return compute(a, b, c)

            _register(three, name + suffix, 3)


def _register(function: Callable[..., Lanes], name: str, arity: int) -> None:
    import functools
    import inspect

    bound = functools.partial(function)
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[:arity]
    bound.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    op(bound, name)


_forms("fadd", 2, lambda a, b: a + b)
_forms("fmul", 2, lambda a, b: a * b)
_forms("ffma", 3, lambda a, b, c: a.fma(b, c))


@op
def fmnmx(a: f32, b: f32, smaller: pred, ftz: imm) -> f32:
    """IEEE-754 minNum/maxNum: the number where one is NaN; -0 below +0."""
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
    """Used before comparisons and conversions with .FTZ."""
    return flush(a)


def _mufu(name: str, formula: Callable[[Lanes], Lanes]) -> None:
    def mufu(a: f32, ftz: imm) -> f32:
        a = ftz.ne(0).select(flush(a), a)
        result = canonical(formula(a))
        return ftz.ne(0).select(flush(result), result)

    op(mufu, f"mufu_{name}")


# The hardware's tables are good to about one unit in the last place (CUDA C++ Programming Guide, intrinsic functions); here
# the correctly rounded value stands for them (a known deviation).
_mufu("rcp", lambda a: a.lift(1) / a)
_mufu("rsq", lambda a: a.lift(1) / a.function("sqrt"))
_mufu("sqrt", lambda a: a.function("sqrt"))
_mufu("ex2", lambda a: a.function("exp2"))
_mufu("lg2", lambda a: a.function("log2"))
