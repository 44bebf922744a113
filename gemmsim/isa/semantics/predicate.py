"""Comparisons and predicate logic: ISETP, FSETP, DSETP, PLOP3, P2R, R2P."""

from __future__ import annotations

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import imm, op, pred, u32

AND, OR, XOR = 0, 1, 2  # how a comparison combines with the third predicate


def combine(result: Lanes, p: Lanes, how: Lanes) -> Lanes:
    return how.eq(AND).select(result & p, how.eq(OR).select(result | p, result ^ p))


def both(result: Lanes, p: Lanes, how: Lanes) -> tuple[Lanes, Lanes]:
    """What a SETP writes: the comparison, and its complement, each combined with p."""
    return combine(result, p, how), combine(~result, p, how)


COMPARISONS = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a.eq(b),
    "ne": lambda a, b: a.ne(b),
}


def _ordered(a: Lanes, b: Lanes) -> Lanes:
    return a.eq(a) & b.eq(b)


# Float comparisons: the plain names are false on NaN, the ...U forms are true on NaN. NE is the ordered one in SASS.
FLOAT_COMPARISONS = {
    **COMPARISONS,
    "ne": lambda a, b: a.ne(b) & _ordered(a, b),
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "equ": lambda a, b: a.eq(b) | ~_ordered(a, b),
    "neu": lambda a, b: a.ne(b),
    "num": _ordered,
    "nan": lambda a, b: ~_ordered(a, b),
}


def _setp(name: str, type_: str, comparison: object) -> None:
    def setp(a, b, p: pred, how: imm) -> tuple[pred, pred]:  # type: ignore[no-untyped-def]
        return both(comparison(a, b), p, how)  # type: ignore[operator]

    setp.__annotations__.update(a=type_, b=type_)
    op(setp, f"setp_{name}_{type_}")


def _setp_ex(name: str, type_: str, comparison: object) -> None:
    def setp_ex(a, b, p: pred, low: pred, how: imm) -> tuple[pred, pred]:  # type: ignore[no-untyped-def]
        return both(comparison(a, b, low), p, how)  # type: ignore[operator]

    setp_ex.__annotations__.update(a=type_, b=type_)
    op(setp_ex, f"setp_ex_{name}_{type_}")


for _type in ("s32", "u32", "s64", "u64"):
    for _name, _comparison in COMPARISONS.items():
        _setp(_name, _type, _comparison)
for _type in ("f32", "f64"):
    for _name, _comparison in FLOAT_COMPARISONS.items():
        _setp(_name, _type, _comparison)
# .EX compares the high words of a 64-bit value; `low` is the low words' comparison by the same relation.
for _type in ("s32", "u32"):
    _setp_ex("lt", _type, lambda a, b, low: (a < b) | (a.eq(b) & low))
    _setp_ex("gt", _type, lambda a, b, low: (a > b) | (a.eq(b) & low))
_setp_ex("eq", "u32", lambda a, b, low: a.eq(b) & low)
_setp_ex("ne", "u32", lambda a, b, low: a.ne(b) | low)


@op
def plop3(a: pred, b: pred, c: pred, first: imm, second: imm) -> tuple[pred, pred]:
    """Two three-input predicate functions by truth table (bit 4a + 2b + c)."""
    index = (a.convert("u32") << 2) | (b.convert("u32") << 1) | c.convert("u32")
    return ((first >> index) & 1).ne(0), ((second >> index) & 1).ne(0)


@op
def bit_of(a: u32, bit: imm) -> pred:
    """One predicate of R2P."""
    return ((a >> bit) & 1).ne(0)


@op
def with_bit(a: u32, p: pred, bit: imm) -> u32:
    """One predicate of P2R."""
    one = a.lift(1) << bit
    return p.select(a | one, a & ~one)


@op
def pmov(p: pred) -> pred:
    return p
