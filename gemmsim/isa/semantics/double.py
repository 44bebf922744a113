"""Defines what double precision opcodes compute: DFMA, DADD, DMUL.

A result that is NaN repeats an operand's NaN, made quiet: the second factor's, else the addend's, else the first
factor's; in a sum the second addend's goes before the first one's. Where no operand is NaN, it is `DEFAULT_NAN`. (This
is what an H200 does, see `gemmsim-validate opcodes`.) The NaN has the sign that it had before `-x`, which `negated`
undoes: bit k belongs to operand k.
"""

from __future__ import annotations

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import f64, imm, op

DEFAULT_NAN = 0xFFF8000000000000
QUIET = 0x0008000000000000


def repeat_nan(result: Lanes, *operands: Lanes, negated: Lanes | None = None, order: tuple[int, ...] = (0,)) -> Lanes:
    """Return `result` with its NaNs replaced: by that of the first operand in `order` that is NaN."""
    chosen = result.bitcast("u64").lift(DEFAULT_NAN)
    for number in reversed(order):
        operand = operands[number]
        bits = operand.bitcast("u64") | QUIET
        if negated is not None:
            bits = bits ^ (((negated >> number) & 1).convert("u64") << 63)
        chosen = operand.ne(operand).select(bits, chosen)
    return result.ne(result).select(chosen, result.bitcast("u64")).bitcast("f64")


@op
def dadd(a: f64, b: f64, negated: imm) -> f64:
    return repeat_nan(a + b, a, b, negated=negated, order=(1, 0))


@op
def dmul(a: f64, b: f64, negated: imm) -> f64:
    return repeat_nan(a * b, a, b, negated=negated, order=(1, 0))


@op
def dfma(a: f64, b: f64, c: f64, negated: imm) -> f64:
    return repeat_nan(a.fma(b, c), a, b, c, negated=negated, order=(1, 2, 0))


@op
def dabs(a: f64) -> f64:
    """Return the absolute value |a|, by which NaN keeps its sign."""
    bits = a.bitcast("u64")
    return a.ne(a).select(bits, bits & 0x7FFFFFFFFFFFFFFF).bitcast("f64")
