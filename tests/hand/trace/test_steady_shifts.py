"""Shifts to the right, ANDs and products of words that move: what is proved of periods, against each of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace.execute import Executor
from gemmsim.trace.steady.affine import Walk
from gemmsim.trace.steady.paths import Path
from gemmsim.trace.types import Launch

MOST, MASK = 1 << 12, 0xFFFFFFFF
HIGH = 0xF0000005  # in R5
SHIFTS: dict[str, Callable[[int, int], int]] = {
    "SHF.R.U32.HI R2, RZ, {}, R4": lambda x, n: x >> n,
    "SHF.R.S32.HI R2, RZ, {}, R4": lambda x, n: (x - (x >> 31 << 32)) >> n & 0xFFFFFFFF,
    "SHF.R.U64 R2, R4, {}, R5": lambda x, n: (HIGH << 32 | x) >> n & 0xFFFFFFFF,
    "SHF.R.S64 R2, R4, {}, R5": lambda x, n: (HIGH << 32 | x) >> n & 0xFFFFFFFF,
    "LOP3.LUT R2, R4, {}, RZ, 0xc0, !PT": lambda x, n: x & n,
    "LEA R2, P0, R4, R6, {}": lambda x, n: (x << n & 0xFFFFFFFF) + BASE,
    "IMAD.WIDE.U32 R2, R4, {}, RZ": lambda x, n: x * n,
    "IMAD.WIDE.U32 R2, R4, {}, R4": lambda x, n: x * n + (HIGH << 32 | x),
    "IMAD.HI.U32 R2, R4, {}, RZ": lambda x, n: x * n >> 32,
    "IMAD.WIDE R2, R4, {}, RZ": lambda x, n: (x - (x >> 31 << 32)) * (n - (n >> 31 << 32)) & (1 << 64) - 1,
    "IMAD.HI R2, R4, {}, RZ": lambda x, n: (x - (x >> 31 << 32)) * (n - (n >> 31 << 32)) >> 32 & 0xFFFFFFFF,
}
BASE = 0x1000  # in R6
MAGIC = 0x51EB851F  # x / 100 is the high word of x * MAGIC, shifted to the right by 5 bits
WORDS = [0, 5, 0x1234567, 0x7FFFFF00, 0x7FFFFFFF, 0x80000000, 0xFFFFF003, 0xFFFFFFFF]


@cache
def executor(text: str) -> Executor:
    """Of one instruction, which is executed by nobody."""
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate([text, "EXIT"]))
    program = Program("text", "text", "sm_80", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    return Executor(program, Launch((1, 1, 1), (1, 1, 1), (), parameters=()))


def proved(text: str, word: int, step: int) -> tuple[int, int]:
    """Return for how many periods an instruction is proved, and how many periods would have to be one otherwise."""
    one = executor(text)
    first = one.initial.reshape(-1, 32).copy()
    first[4], first[5], first[6] = word, HIGH, BASE
    moved = np.zeros_like(first)
    moved[4] = step & 0xFFFFFFFF
    walk = Walk(one.micro, one.code)
    return walk.periods(first.reshape(-1), moved.reshape(-1), [0], Path(None, 1), MOST), walk.factor


def holds(of: Callable[[int, int], int], word: int, step: int, n: int, most: int) -> bool:
    """Return whether both words of all results move for `most` periods by what they move in the first one."""
    results = (of((word + k * step) & 0xFFFFFFFF, n) for k in range(most + 1))
    moves = (((b & MASK) - (a & MASK) & MASK, ((b >> 32) - (a >> 32)) & MASK) for a, b in pairwise(results))
    first = next(moves, None)
    return all(move == first for move in moves)


@pytest.mark.parametrize("text", SHIFTS)
def test_what_is_proved_holds_in_each_period(text: str) -> None:
    for n in (0, 1, 3, 5) if "SHF" in text or "LEA" in text else (1, 7, 31, 0x3F0, MAGIC, 0xAAAAAAAB):
        for word in WORDS:
            for step in (1, 8, -8, 96, 1 << 14, -(1 << 20), 0x40000000):
                periods, _ = proved(text.format(hex(n)), word, step)
                assert holds(SHIFTS[text], word, step, n, periods), (n, hex(word), step)


@pytest.mark.parametrize(
    ("text", "word", "step", "periods"),
    [
        ("SHF.R.U32.HI R2, RZ, 0x3, R4", 5, 8, MOST),  # whatever the low bits are
        ("SHF.R.U32.HI R2, RZ, 0x3, R4", 0xFFFFFF05, 8, 31),  # 0xfa is 31 steps on, and the next one wraps around
        ("SHF.R.S32.HI R2, RZ, 0x3, R4", 0xFFFFFF05, 8, MOST),
        ("SHF.R.S32.HI R2, RZ, 0x3, R4", 0x7FFFFF05, 8, 31),
        ("SHF.R.U64 R2, R4, 0x3, R5", 5, 16, MOST),
        ("SHF.R.U64 R2, R4, 0x3, R5", 0xFFFFFF05, 16, 15),
        ("SHF.R.U32.HI R2, RZ, 0x3, R4", 5, 4, 0),
        ("SHF.R.U32.HI R2, RZ, 0x10, R4", 0xFFF0, 1, 15),  # until then the result does not move
        ("LEA R2, P0, R4, R6, 0x3", 0x20000100, 8, MOST),  # 8 * 0x20000100 is 0x800 and a bit that is left out
        ("LEA R2, P0, R4, R6, 0x3", 0x3FFFFF00, 8, 31),  # 32 steps on the word that is shifted wraps around
        ("LOP3.LUT R2, R4, 0x7, RZ, 0xc0, !PT", 5, 8, MOST),
        ("LOP3.LUT R2, R4, 0xf, RZ, 0xc0, !PT", 5, 8, 0),
        (f"IMAD.WIDE.U32 R2, R4, {MAGIC:#x}, RZ", 7, 100, MOST),  # the low word moves by 28
        (f"IMAD.HI.U32 R2, R4, {MAGIC:#x}, RZ", 7, 100, MOST),
        (f"IMAD.HI.U32 R2, R4, {MAGIC:#x}, RZ", 7, 1, 2),  # 0.32 of 2**32: 7 of them are 2.24, 9 2.88, and 10 3.2
        (f"IMAD.HI.U32 R2, R4, {MAGIC:#x}, RZ", 0xFFFFFF05, 100, 2),  # until x wraps around
        (f"IMAD.WIDE.U32 R2, R4, {MAGIC:#x}, R4", 7, 100, 0),  # another word moves, too
    ],
)
def test_as_much_as_can_be_is_proved(text: str, word: int, step: int, periods: int) -> None:
    assert proved(text, word, step)[0] == periods


def test_how_many_periods_are_to_be_one() -> None:
    """A mask of 10 bits takes bits of a counter that moves by 24 = 3 * 8; it does not of one that moves by 128 * 24."""
    mask = "LOP3.LUT R2, R4, 0x3ff, RZ, 0xc0, !PT"
    assert proved(mask, 77, 24) == (0, 128)
    assert proved(mask, 77, 64 * 24) == (0, 2)
    assert proved(mask, 77, 128 * 24) == (MOST, 1)


def test_how_many_periods_are_to_be_one_where_a_counter_is_divided() -> None:
    """25 * MAGIC is 7 more than 2**35, the least of all: the quotient before the shift moves by 8, and by 32 in four of
    these."""
    assert proved(f"IMAD.HI.U32 R2, R4, {MAGIC:#x}, RZ", 7, 1) == (2, 25)
    assert proved("SHF.R.U32.HI R2, RZ, 0x5, R4", 16, 8) == (1, 4)
