"""Defines comparisons and predicate logic: ISETP, FSETP, DSETP, PLOP3, P2R, R2P."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import f64, imm, op, pred, u32

AND, OR, XOR = 0, 1, 2  # how a comparison combines with the third predicate


def combine(result: Lanes, p: Lanes, how: Lanes) -> Lanes:
    return how.eq(AND).select(result & p, how.eq(OR).select(result | p, result ^ p))


def both(result: Lanes, p: Lanes, how: Lanes) -> tuple[Lanes, Lanes]:
    """Return the two results of a SETP: the comparison and its complement, each combined with p."""
    return combine(result, p, how), combine(~result, p, how)


# Only a few comparisons are micro-operations; lowering makes the other comparisons of these by swapping operands and
# inverting results. `invert` is applied before the result is combined with the third predicate.


def _setp(name: str, type_: str, comparison: Callable[[Lanes, Lanes], Lanes]) -> None:
    def setp(a, b, p: pred, invert: imm, how: imm) -> tuple[pred, pred]:  # type: ignore[no-untyped-def]
        return both(comparison(a, b) ^ invert.ne(0), p, how)

    setp.__annotations__.update(a=type_, b=type_)
    op(setp, f"setp_{name}_{type_}")


def _setp_ex(name: str, type_: str, comparison: Callable[[Lanes, Lanes, Lanes], Lanes]) -> None:
    """Register a comparison with .EX, which compares the high words of 64-bit values.

    The operand `low` of the comparison is the result of comparing the low words.
    """

    def setp_ex(a, b, p: pred, low: pred, invert: imm, how: imm) -> tuple[pred, pred]:  # type: ignore[no-untyped-def]
        return both(comparison(a, b, low) ^ invert.ne(0), p, how)

    setp_ex.__annotations__.update(a=type_, b=type_)
    op(setp_ex, f"setp_ex_{name}_{type_}")


for _type in ("s32", "u32"):
    _setp("lt", _type, lambda a, b: a < b)
    _setp_ex("lt", _type, lambda a, b, low: (a < b) | (a.eq(b) & low))
_setp("eq", "u32", lambda a, b: a.eq(b))
_setp_ex("eq", "u32", lambda a, b, low: a.eq(b) & low)
for _type in ("f32", "f64"):  # all are false where an operand is NaN
    _setp("lt", _type, lambda a, b: a < b)
    _setp("le", _type, lambda a, b: a <= b)
    _setp("eq", _type, lambda a, b: a.eq(b))
    _setp("lg", _type, lambda a, b: (a < b) | (b < a))
    _setp("num", _type, lambda a, b: a.eq(a) & b.eq(b))


@op
def dsetp_minmax(a: f64, b: f64, smaller: imm) -> tuple[pred, pred]:
    """DSETP.MIN and .MAX: whether a is the smaller or larger of two doubles, and whether b, a NaN, is to become quiet.

    -0 is below +0, and a number is chosen over NaN. Of two NaN neither is chosen.
    """
    less = (a < b) | (a.eq(b) & (a.bitcast("s64") < b.bitcast("s64")))
    more = (b < a) | (a.eq(b) & (b.bitcast("s64") < a.bitcast("s64")))
    first = smaller.ne(0).select(less, more) | (b.ne(b) & a.eq(a))
    return first, a.ne(a) & b.ne(b)


@op
def plop3(a: pred, b: pred, c: pred, first: imm, second: imm) -> tuple[pred, pred]:
    """PLOP3: two functions of three predicates by their truth tables, whose bit 4a + 2b + c is the result."""
    index = (a.convert("u32") << 2) | (b.convert("u32") << 1) | c.convert("u32")
    return ((first >> index) & 1).ne(0), ((second >> index) & 1).ne(0)


@op
def bit_of(a: u32, bit: imm) -> pred:
    """Return bit `bit` of a: one of the predicates that R2P writes."""
    return ((a >> bit) & 1).ne(0)


@op
def with_bit(a: u32, p: pred, bit: imm) -> u32:
    """Return a with bit `bit` set to the predicate p: P2R does so for each of several predicates."""
    one = a.lift(1) << bit
    return p.select(a | one, a & ~one)
