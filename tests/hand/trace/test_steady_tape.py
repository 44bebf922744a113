"""Tapes of walks through a period: what they say of other words is what a walk finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace.execute import Executor
from gemmsim.trace.steady import tape_words, tapes
from gemmsim.trace.steady.affine import Walk
from gemmsim.trace.steady.paths import Path
from gemmsim.trace.steady.tapes import _renamed, _replay
from gemmsim.trace.types import Launch

MOST, WHOLE = 1 << 20, Path(None, 0xFFFFFFFF)


class Counting(Walk):
    """A walk that counts how often it follows a period itself; `alone`: without tapes."""

    def __init__(self, *texts: str, alone: bool = False) -> None:
        parsed = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate([*texts, "BRA 0x0", "EXIT"]))
        program = Program("loop", "loop", "sm_90", "c", parsed, (), 64, 1024, 0, 1, (), 0x210)
        self.executor = Executor(program, Launch((1, 1, 1), (32, 1, 1), (), parameters=()))
        # Only of a slice, which has no other arithmetic left, accesses are followed.
        code = self.executor.trace_slice if any("STG" in text for text in texts) else self.executor.code
        assert code is not None
        super().__init__(self.executor.micro, code)
        self.instructions, self.walks, self._alone = range(len(texts) + 1), 0, alone

    def _follow(self, *arguments: Any) -> None:
        self.walks += 1
        if self._alone:
            self._tapes._kept.clear()
        super()._follow(*arguments)

    def words(self) -> np.ndarray:
        return self.executor.initial.reshape(-1, 32).copy()

    def all_found(self, first: np.ndarray, step: np.ndarray, *rest: Any) -> tuple[Any, ...]:
        """Return for how many periods the words are proved, and all else that is found."""
        if self._alone:
            self._tapes._kept.clear()
        self.forget()
        flat = [words.reshape(len(words), -1) for words in (first, step)]
        periods = self.periods(*flat, self.instructions, WHOLE, MOST, *rest)
        found = (set(self.strides), dict(self.moving), dict(self.bounded)) if periods else ()
        return periods, self.factor, *found


# R4 moves by a step, from near 0, 2^28, 2^31 or 2^32; R7 is near to it, R8 a factor, R10 and R11 an address
LOOPS = [
    ("IADD3 R2, P0, R4, 0x8, RZ",),
    ("LEA R2, P0, R4, R6, 0x3",),
    ("LEA.HI.X.SX32 R2, R4, R6, 0x1, P1",),
    ("ISETP.GE.U32.AND P0, PT, R4, R7, PT", "@P0 IADD3 R9, R9, 0x0, RZ"),
    ("ISETP.GE.AND P0, PT, R4, R7, PT",),
    ("ISETP.NE.U32.AND P0, PT, R4, R7, PT",),
    ("SHF.R.U32.HI R2, RZ, 0x3, R4", "IADD3 R3, R2, R2, RZ"),
    ("LOP3.LUT R2, R4, 0xfffffff8, RZ, 0xc0, !PT",),
    ("LOP3.LUT R2, R4, 0x7, RZ, 0xc0, !PT",),
    ("IMAD.WIDE.U32 R2, R4, R8, R14",),
    ("IMAD.WIDE R2, R4, R8, R14",),
    ("IMAD.HI.U32 R2, R4, R8, RZ",),
    ("IMAD R2, R4, R8, R7",),
    ("R2UR UR4, R4",),
    ("STG.E [R10.64], R6", "STS [R12], R6", "IADD3 R10, R10, 0x80, RZ"),
]


@pytest.mark.parametrize("texts", LOOPS, ids=lambda texts: texts[0].split()[0])
@pytest.mark.parametrize("warps", [1, 3])
def test_a_tape_says_what_a_walk_finds(texts: tuple[str, ...], warps: int) -> None:
    """Whatever words come, in whatever order: results, addresses, and which periods might be one."""
    chance = np.random.default_rng(len(texts[0]) + warps)
    texts = (*texts, "IADD3 R4, R4, {}, RZ".format(hex(8 if "0x7" in texts[0] else 24)))
    taped, alone = Counting(*texts), Counting(*texts, alone=True)
    for _ in range(80):
        first = np.stack([taped.words()] * warps)
        step = np.zeros_like(first)
        near = 8 * chance.integers(3000, size=(warps, 1)).astype(np.uint32)
        first[:, 4] = np.uint32(chance.choice([0, 1 << 28, 1 << 31])) + near * chance.choice([-1, 1]).astype(np.uint32)
        first[:, 7] = first[:, 4] + 8 * chance.integers(3000, size=(warps, 1)).astype(np.uint32)
        first[:, 8] = chance.choice([3, 0x28F5C28F, 0x80000000])
        first[:, 14], first[:, 15] = chance.choice([0, 5, 0xFFFFFF00]), chance.choice([0, 3])
        first[:, 10] = 0x1000 + near + 4 * np.arange(32, dtype=np.uint32)
        first[:, 12] = 4 * np.arange(32, dtype=np.uint32)
        step[:, 4] = 8 if "0x7" in texts[0] else 24
        if "STG" in texts[0]:
            step[:, 10] = 0x80
        for walk in (taped, alone):
            walk.begin()
        found = taped.all_found(first, step)
        assert found == alone.all_found(first, step), first[:, [4, 7, 8], 0]
    assert alone.walks >= 80 and taped.walks < alone.walks / 2


def test_words_that_answer_otherwise_are_walked() -> None:
    """Where P1 does not hold, R4 is squared, of which nothing is proved."""
    texts = "ISETP.LT.U32.AND P1, PT, R7, 0x5, PT", "@!P1 IMAD R9, R4, R4, RZ", "IADD3 R4, R4, 0x8, RZ"
    walk = Counting(*texts)
    first, step = walk.words()[None], np.zeros_like(walk.words()[None])
    step[:, 4] = 8
    for word, proved, walks in ((1, MOST, 1), (2, MOST, 1), (9, 0, 2), (3, MOST, 2)):
        first[:, 7] = word
        assert (walk.all_found(first, step)[0] > 0, walk.walks) == (proved > 0, walks), word


def test_a_tape_holds_for_other_blocks_that_differ_alike() -> None:
    """R6 differs by one vector, R7 by another. That they are compared matters to neither; that R6 no more differs as R4
    moves, or that both differ by one vector, is another case."""
    walk = Counting("IADD3 R2, R6, R7, RZ", "IADD3 R4, R4, 0x8, RZ")
    first, step = walk.words()[None], np.zeros_like(walk.words()[None])
    step[:, 4], blocks = 8, np.zeros(first.shape, np.int32)

    def walks(six: int, seven: int) -> int:
        walk.begin()
        blocks[:, 6], blocks[:, 7] = six, seven
        before = walk.walks
        assert walk.all_found(first, step, blocks.reshape(1, -1))[0] == MOST
        return walk.walks - before

    assert [walks(*pair) for pair in ((5, 6), (5, 6), (9, 3), (6, 5), (7, 7), (8, 8), (5, 0), (0, 5), (5, 6))] == [
        *(1, 0, 0, 0, 1, 0, 1, 1, 0)
    ]


def test_how_blocks_differ_may_be_asked_by_other_numbers() -> None:
    """R6, 50 and no less in any block, is below 150: up to 99 more, by whatever vector. Else R4 decides, and moves."""
    compares = "ISETP.GE.U32.AND P0, PT, R6, 0x96, PT", "ISETP.GE.U32.OR P0, PT, R4, 0xffff, P0"
    taped, alone = (
        Counting(*compares, "IADD3 R4, R4, 0x8, RZ"),
        Counting(*compares, "IADD3 R4, R4, 0x8, RZ", alone=True),
    )
    first, step = taped.words()[None], np.zeros_like(taped.words()[None])
    first[:, 6], step[:, 4], blocks = 50, 8, np.zeros(first.shape, np.int32)
    for number, span in ((9, (0, 99)), (4, (-50, 3)), (4, (0, 100)), (7, (-51, 0)), (8, None), (9, (0, 1))):
        blocks[:, 6] = number
        found = []
        for walk in (taped, alone):
            walk.begin()
            found.append(walk.all_found(first, step, blocks.reshape(1, -1), (), {number: span}.get))
        assert found[0] == found[1] and (found[0][0] > 0) == (span in ((0, 99), (-50, 3), (0, 1)))
    assert taped.walks < alone.walks


def test_a_tape_of_several_warps_holds_for_any_number_of_them() -> None:
    """But not for one alone, of which more may be followed. What is known of other blocks must be the same of all."""
    walk = Counting("IADD3 R2, R6, R7, RZ", "IADD3 R4, R4, 0x8, RZ")

    def walks(warps: int, *differ: int) -> int:
        first = np.stack([walk.words()] * warps)
        step, blocks = np.zeros_like(first), np.zeros(first.shape, np.int32)
        step[:, 4], blocks[:, 6] = 8, np.array(differ)[:, None]
        before = walk.walks
        assert walk.all_found(first, step, blocks.reshape(warps, -1))[0] == MOST
        return walk.walks - before

    assert [walks(2, 5, 5), walks(3, 9, 9, 9), walks(5, 4, 4, 4, 4, 4), walks(1, 5), walks(1, 6)] == [1, 0, 0, 1, 0]
    assert [walks(2, 5, 6), walks(2, 7, 9), walks(3, 5, 6, 6), walks(3, 5, 5, 5)] == [1, 0, 1, 0]


def test_rows_that_change_at_one_instruction_are_tried_at_the_next_one() -> None:
    """R6 differs in other blocks, so that whether R4 + R6 carries may come to do so: with P0 and R2 it is looked at
    again, once for two places. Behind a comparison that sets P0 anew this decides, which it may not where it is taken
    to change: then all that changes is found anew, in two walks."""
    texts = (
        *("IADD3 R2, P0, R4, R6, RZ", "NOP", "ISETP.LT.U32.AND P0, PT, R7, 0x5, PT", "@P0 IADD3 R9, R9, 0x0, RZ"),
        "IADD3 R4, R4, 0x8, RZ",
    )
    walk = Counting(*texts)
    first, step = walk.words()[None], np.zeros_like(walk.words()[None])
    step[:, 4], blocks = 8, np.zeros(first.shape, np.int32)
    blocks[:, 6], every = 5, [0, 1, 2, 3, 4, 5]
    for start, walks in ((1, 2), (2, 3), (3, 6), (2, 6)):
        walk.instructions = every[start:] + every[:start]
        assert walk.all_found(first, step, blocks.reshape(1, -1))[0] == MOST and walk.walks == walks, start


@pytest.mark.parametrize(("before", "now", "numbers"), [
    ([0, 0, 0, 0], [0, 0, 0, 0], {}),
    ([0, 5, 6, 5], [0, 5, 6, 5], {5: 5, 6: 6}),
    ([0, 5, 6, 5], [0, 6, 5, 6], {5: 6, 6: 5}),
    ([0, 5, 6, 5], [0, 7, 7, 7], None),  # what differed in two ways differs in one
    ([0, 5, 5, 5], [0, 7, 8, 7], None),
    ([0, 5, 6, 5], [1, 5, 6, 5], None),
    ([0, 5, 6, 5], [0, 5, 0, 5], None),
    ([0, -1, -2, 5], [0, -1, -2, 9], {-1: -1, -2: -2, 5: 9}),
    ([0, -1, -2, 5], [0, -2, -1, 9], None),  # what is not known has no number
    ([0, -1, 3, 5], [0, 4, 3, 9], None),
])  # fmt: skip
def test_numbers_of_other_blocks(before: list[int], now: list[int], numbers: dict[int, int] | None) -> None:
    a, b = (np.array([words], np.int64) for words in (before, now))
    assert _renamed(a, b) == numbers


def test_without_other_blocks_there_are_no_numbers() -> None:
    some = np.array([[5, 6, 0, 0]])
    assert _renamed(None, None) == {} and _renamed(some, None) is None and _renamed(None, some) is None


def test_of_words_that_nobody_asked_for_nothing_must_be_alike() -> None:
    """R6 and R7 are read; R8, and R2 before it is written, are not."""
    walk = Counting("IADD3 R2, R6, R7, RZ", "IADD3 R4, R4, 0x8, RZ")
    first, step = walk.words()[None], np.zeros_like(walk.words()[None])
    step[:, 4] = 8
    for place, walks in ((6, 1), (8, 2), (2, 2), (7, 3)):
        walk.begin()
        blocks = np.zeros(first.shape, np.int32)
        blocks[:, place] = 5
        assert walk.all_found(first, step, blocks.reshape(1, -1))[0] == MOST and walk.walks == walks


def test_ways_are_forgotten_that_were_not_used_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way has one tape of some ten rows, of which two have room."""
    walk = Counting("IADD3 R4, R4, 0x8, RZ", "IADD3 R5, R5, 0x8, RZ", "IADD3 R6, R6, 0x8, RZ")
    first, step = walk.words()[None], np.zeros_like(walk.words()[None])
    step[:, 4] = 8
    assert walk.all_found(first, step)[0] > 0
    rows = walk._tapes._rows
    assert rows >= 5
    monkeypatch.setattr(tapes, "_MOST_ROWS", 2 * rows)
    for place, walks in ((4, 1), (5, 2), (4, 2), (6, 3), (4, 3), (5, 4), (6, 5), (5, 5)):
        first, step = walk.words()[None], np.zeros_like(walk.words()[None])
        step[:, place] = 8
        assert walk.all_found(first, step)[0] > 0 and walk.walks == walks


def answered(row: tuple[int, ...], lanes: dict[int, tuple[int, int, int]], last: int) -> tuple[bool, int]:
    """Return whether the answer to a question is that of the row, and for how many periods.

    lanes  words of a warp in period 0, in period 1 and in period `last`; all others are 0
    """
    words = np.zeros((3, 1, 128), np.uint32)
    for place, of_periods in lanes.items():
        words[:, 0, place] = [word & 0xFFFFFFFF for word in of_periods]
    table, least = np.zeros((1, tape_words.COLUMNS), np.int64), np.array([MOST], np.int64)
    table[0, : len(row)] = row
    found = _replay(table, words, np.uint64(words.ctypes.data), last, least)
    return found == 1, int(least[0])


@pytest.mark.parametrize(("row", "lanes", "same"), [
    ((tape_words.MOVES, 32, 0b10, 1), {33: (5, 6, 14)}, True),
    ((tape_words.MOVES, 32, 0b10, 0), {33: (5, 6, 14)}, False),
    ((tape_words.MOVES, 32, 0b10, 1), {33: (5, 5, 6)}, True),  # if only at last
    ((tape_words.MOVES, 32, 0b01, 1), {33: (5, 6, 14)}, False),  # not in this lane
    ((tape_words.HOLDS, 32, 0b11, 0, 0b10), {33: (1 << 31,) * 3}, True),
    ((tape_words.HOLDS, 32, 0b11, 0, 0b10), {33: (1 << 31, 1 << 31, 0)}, False),
    ((tape_words.HOLDS, 32, 0b11, 0xFFFFFFFF, 0b01), {33: (1 << 31,) * 3}, True),
    ((tape_words.STRIDE, 32, 0b10, 8), {33: (0, 8, 72)}, True),
    ((tape_words.STRIDE, 32, 0b10, 8), {33: (0, 8, 71)}, False),
    ((tape_words.STRIDE, 32, 0b10, 16), {33: (0, 8, 72)}, False),
    ((tape_words.STRIDE, 32, 0b10, 8), {33: (-8, 0, 64), 65: (0, 1, 1)}, True),  # into the high word
    ((tape_words.STRIDE, 32, 0b10, 8), {33: (-8, 0, 64), 65: (0, 0, 0)}, False),
    ((tape_words.STRIDE, 32, 0b11, 8), {33: (0, 8, 72)}, False),  # lane 0 stays where it is
    ((tape_words.LINEAR, 32, 0b10), {33: (5, 2, -22)}, True),
    ((tape_words.LINEAR, 32, 0b10), {33: (5, 2, -21)}, False),
    ((tape_words.LINEAR, 32, 0b01), {33: (5, 2, -21)}, True),
    ((tape_words.CONSTANT, 32, 0b10), {33: (5, 5, 5)}, True),
    ((tape_words.CONSTANT, 32, 0b10), {33: (5, 5, 6)}, False),
    ((tape_words.CONSTANT, 32, 0b10), {33: (5, 6, 5)}, False),
])  # fmt: skip
def test_questions_of_the_compiled_loop(
    row: tuple[int, ...], lanes: dict[int, tuple[int, int, int]], same: bool
) -> None:
    """The last period is the ninth."""
    assert answered(row, lanes, 9)[0] == same


@pytest.mark.parametrize(("row", "lanes", "room"), [
    ((tape_words.RANGE, 0, 1, 0, 0, 32), {0: (0xFFFFFF00, 0xFFFFFF08, 0)}, 31),  # 255 / 8
    ((tape_words.RANGE, 0, 1, 0, 1, 32), {0: (0x7FFFFF00, 0x7FFFFF08, 0)}, 31),
    ((tape_words.RANGE, 0, 1, 0, 1, 32), {0: (-0x7FFFFFF0, -0x7FFFFFF4, 0)}, 4),  # 16 above the least number
    ((tape_words.RANGE, 0, 1, 0xFFFFFFFF, 0, 32), {0: (-101, -93, 0)}, 12),  # 100 goes down
    ((tape_words.RANGE, 0, 1, 0, 0, 29), {0: (0x1FFFFF00, 0x1FFFFF08, 0)}, 31),
    ((tape_words.RANGE, 0, 3, 0, 0, 32), {0: (100, 100, 0), 1: (100, 90, 0)}, 10),
    ((tape_words.PRODUCT, 0, 1, 32, 64, 0), {0: (10, 11, 0), 32: (1 << 30,) * 3}, 1),  # 10 * 2^30 is 2^31 in 32 bits
    ((tape_words.PRODUCT, 0, 1, 32, 64, 0), {0: (0, 1, 0), 32: (-2, -2, 0), 64: (9,) * 3}, 4),  # 9 goes down by 2
    ((tape_words.PRODUCT, 0, 1, 32, 64, 1), {0: (0, 1, 0), 32: (7,) * 3}, 0xFFFFFFFF // 7),
    ((tape_words.PRODUCT, 0, 1, 32, 64, 1), {0: (0, 1, 0), 32: (7,) * 3, 64: (9,) * 3}, None),
    ((tape_words.PRODUCT, 0, 1, 32, 64, 1), {0: (0, 1, 0), 32: (7,) * 3, 96: (9,) * 3}, None),
])  # fmt: skip
def test_rooms_of_the_compiled_loop(
    row: tuple[int, ...], lanes: dict[int, tuple[int, int, int]], room: int | None
) -> None:
    """For how many periods no word wraps around; None where a row must be 0 that is not."""
    assert answered(row, lanes, 1) == ((False, MOST) if room is None else (True, min(room, MOST)))
    if room is not None and room < MOST:
        assert answered(row, lanes, room)[0] and not answered(row, lanes, room + 1)[0]
