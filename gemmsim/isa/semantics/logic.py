"""Defines what bitwise logic, byte permutes and choices compute: LOP3, PRMT, SEL."""

from __future__ import annotations

from collections.abc import Callable

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import imm, op, pred, u32, u64

# A LOP3's table answers bit 4a + 2b + c. Tables that occur often have a micro-operation of their own.
COMMON_TABLES: dict[int, Callable[[Lanes, Lanes, Lanes], Lanes]] = {
    0xC0: lambda a, b, c: a & b,
    0xFC: lambda a, b, c: a | b,
    0x3C: lambda a, b, c: a ^ b,
    0xF8: lambda a, b, c: a | (b & c),
    0xEA: lambda a, b, c: (a & b) | c,
    0x80: lambda a, b, c: a & b & c,
    0xFE: lambda a, b, c: a | b | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xE2: lambda a, b, c: (a & b) | (c & ~b),
    0xCA: lambda a, b, c: (a & b) | (~a & c),
    0x33: lambda a, b, c: ~b,
    0x30: lambda a, b, c: a & ~b,
    0x0F: lambda a, b, c: ~a,
}


def _common(table: int, formula: Callable[[Lanes, Lanes, Lanes], Lanes]) -> None:
    def lop3(a: u32, b: u32, c: u32) -> tuple[u32, pred]:
        value = formula(a, b, c)
        return value, value.ne(0)

    op(lop3, f"lop3_{table:02x}")


for _table, _formula in COMMON_TABLES.items():
    _common(_table, _formula)


@op
def lop3(a: u32, b: u32, c: u32, table: imm) -> tuple[u32, pred]:
    """LOP3: a bitwise function of three inputs by its truth table. The predicate says whether any result bit is set."""

    def row(bit: int) -> Lanes:
        return a.lift(0) - ((table >> bit) & 1)  # all ones where the table has a one

    def by_c(low: int) -> Lanes:
        return (row(low + 1) & c) | (row(low) & ~c)

    def by_b(low: int) -> Lanes:
        return (by_c(low + 2) & b) | (by_c(low) & ~b)

    value = (by_b(4) & a) | (by_b(0) & ~a)
    return value, value.ne(0)


@op
def prmt(a: u32, selector: u32, c: u32) -> u32:
    """PRMT: the bytes of c:a that the selector's nibbles name. Bit 3 of a nibble asks for eight copies of the byte's
    sign bit instead."""
    pair = (c.convert("u64") << 32) | a.convert("u64")
    value = a.lift(0)
    for byte in range(4):
        nibble = (selector >> (4 * byte)) & 0xF
        picked = (pair >> ((nibble & 7) << 3).convert("u64")).convert("u32") & 0xFF
        sign = a.lift(0) - (picked >> 7)
        picked = (nibble >= 8).select(sign & 0xFF, picked)
        value = value | (picked << (8 * byte))
    return value


@op
def selector_of_mode(selector: u32, low: imm, high: imm) -> u32:
    """Return the PRMT selector that a mode gives for `selector` modulo 4: one of four halves, two in each immediate."""
    pair = (selector & 2).ne(0).select(high, low)
    return (selector & 1).ne(0).select(pair >> 16, pair & 0xFFFF)


@op
def sel(a: u32, b: u32, p: pred) -> u32:
    return p.select(a, b)


@op
def sel64(a: u64, b: u64, p: pred) -> u64:
    return p.select(a, b)
