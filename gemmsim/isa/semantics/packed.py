"""Defines what packed opcodes compute on the two halves or four bytes of a register, and what the modifiers .FTZ, .SAT,
.RELU and .OOB do to packed floats."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import imm, op, pred, u32

HALF_NAN = 0x7FFF


def _on_halves(name: str, formula: Callable[[Lanes], Lanes]) -> None:
    """Register `name`, which applies `formula` to the bits of both halves of a register."""

    def halves(a: u32) -> u32:
        return (formula(a >> 16) << 16) | formula(a & 0xFFFF)

    op(halves, name)


def _flush(h: Lanes) -> Lanes:
    return (h & 0x7C00).eq(0).select(h & 0x8000, h)


def _saturate(h: Lanes, one: int, infinity: int) -> Lanes:
    magnitude = h & 0x7FFF
    low = ((h & 0x8000).ne(0) | (magnitude > infinity)).select(h.lift(0), h)
    return (low > one).select(h.lift(one), low)


def _relu(h: Lanes, infinity: int) -> Lanes:
    positive = (h & 0x8000).ne(0).select(h.lift(0), h)
    return ((h & 0x7FFF) > infinity).select(h.lift(HALF_NAN), positive)


_on_halves("flush_f16", _flush)
_on_halves("saturate_f16", lambda h: _saturate(h, 0x3C00, 0x7C00))
_on_halves("saturate_bf16", lambda h: _saturate(h, 0x3F80, 0x7F80))
_on_halves("relu_f16", lambda h: _relu(h, 0x7C00))
_on_halves("relu_bf16", lambda h: _relu(h, 0x7F80))


def _xor_signs(name: str, infinity: int) -> None:
    def xor_signs(value: u32, a: u32, b: u32) -> u32:
        signs = (a ^ b) & 0x80008000
        nan = ((value & 0x7FFF) > infinity).select(a.lift(0x8000), a.lift(0))
        nan = nan | ((value & 0x7FFF0000) > (infinity << 16) | 0xFFFF).select(a.lift(0x80000000), a.lift(0))
        return (value & 0x7FFF7FFF) | (signs & ~nan)

    op(xor_signs, name)


_xor_signs("xor_signs_f16", 0x7C00)
_xor_signs("xor_signs_bf16", 0x7F80)


def _signed(h: Lanes, bits: int) -> Lanes:
    """Sign-extend the low `bits` bits, as s32."""
    return (h << (32 - bits)).bitcast("s32") >> (32 - bits)


def _each(a: Lanes, b: Lanes, bits: int, formula: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
    """Apply `formula` to the parts of `bits` bits in which two registers hold packed integers, each in its place."""
    ones, packed = (1 << bits) - 1, a.lift(0)
    for shift in range(0, 32, bits):
        packed = packed | ((formula((a >> shift) & ones, (b >> shift) & ones) & ones) << shift)
    return packed


def _minmax(name: str, bits: int) -> None:
    def vimnmx(a: u32, b: u32, smaller: pred, signed: imm, relu: imm) -> u32:
        def part(x: Lanes, y: Lanes) -> Lanes:
            less = signed.ne(0).select(_signed(x, bits) < _signed(y, bits), x < y)
            picked = (less ^ ~smaller).select(x, y)
            negative = (picked & (1 << (bits - 1))).ne(0)
            return (relu.ne(0) & negative).select(x.lift(0), picked)

        return _each(a, b, bits, part)

    op(vimnmx, name)


def _sum(name: str, bits: int) -> None:
    def viadd(a: u32, b: u32, negations: imm) -> u32:
        # A negated operand arrives as its complement, to which 1 is still added in each part.
        return _each(a, b, bits, lambda x, y: x + y + negations)

    op(viadd, name)


for _parts, _bits in (("16x2", 16), ("8x4", 8)):
    _minmax(f"vimnmx_{_parts}", _bits)
    _sum(f"viadd_{_parts}", _bits)


@op
def viadd_saturated(a: u32, b: u32, negations: imm) -> u32:
    """VIADD.ISAT: a signed sum, clamped to the range of a signed integer."""
    total = _long(a) + _long(b) + _long(negations)
    low = (total > -(1 << 31)).select(total, total.lift(-(1 << 31)))
    return (low < (1 << 31) - 1).select(low, low.lift((1 << 31) - 1)).bitcast("u64").convert("u32")


def _long(x: Lanes) -> Lanes:
    return x.bitcast("s32").convert("s64")


@op
def at_least_zero(a: u32) -> u32:
    """Replace a negative integer by 0, as .RELU asks."""
    return (a.bitcast("s32") < 0).select(a.lift(0), a)


@op
def idp2a(a: u32, b: u32, c: u32, signed_a: imm, signed_b: imm, high: imm) -> u32:
    """IDP.2A: the dot product of the two halves of a and two bytes of b (.HI: the upper ones), added to c."""
    total = c
    for number in range(2):
        x, y = (a >> (16 * number)) & 0xFFFF, (b >> (high.ne(0).select(b.lift(16), b.lift(0)) + 8 * number)) & 0xFF
        x = signed_a.ne(0).select(_signed(x, 16).bitcast("u32"), x)
        y = signed_b.ne(0).select(_signed(y, 8).bitcast("u32"), y)
        total = total + x * y
    return total


@op
def vabsdiff4(a: u32, b: u32, c: u32, signed: imm, accumulate: imm) -> u32:
    """VABSDIFF4: the absolute differences of four bytes each in its place or, with .ACC, their sum, plus c."""
    sums, packed = a.lift(0), a.lift(0)
    for byte in range(4):
        x, y = (a >> (8 * byte)) & 0xFF, (b >> (8 * byte)) & 0xFF
        less = signed.ne(0).select(_signed(x, 8) < _signed(y, 8), x < y)
        difference = less.select(y - x, x - y) & 0xFF
        sums, packed = sums + difference, packed | (difference << (8 * byte))
    return accumulate.ne(0).select(sums + c, packed)


@op
def saturate_integer(a: u32, bits: imm, signed: imm, from_signed: imm) -> u32:
    """Clamp an integer to the range of an integer of `bits` bits: what I2I.SAT, I2IP and F2I do."""
    ones = (a.lift(1) << bits) - 1
    largest = signed.ne(0).select(ones >> 1, ones)
    least = signed.ne(0).select(~(ones >> 1), a.lift(0))
    negative = from_signed.ne(0) & (a.bitcast("s32") < 0)
    above = ~negative & (a > largest)
    below = negative & (a.bitcast("s32") < least.bitcast("s32"))
    return above.select(largest, below.select(least, a))


@op
def insert_pair(high: u32, low: u32, c: u32, bits: imm) -> u32:
    """Pack the low `bits` bits of two integers above each other, and c above both: I2IP and F2IP."""
    ones = (c.lift(1) << bits) - 1
    pair = ((high & ones) << bits) | (low & ones)
    return bits.eq(8).select(pair | (c << 16), pair)


@op
def set_halves(low: pred, high: pred, one: imm) -> u32:
    """HSET2: `one` (1.0, or 0xFFFF for all ones) in each half whose predicate is true, else 0."""
    zero = one - one
    return low.select(one, zero) | high.select(one << 16, zero)
