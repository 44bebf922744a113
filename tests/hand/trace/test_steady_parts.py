"""Parts of what cuts loops, each by itself: lengths of periods, units, stops, and proofs worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace import micro, words
from gemmsim.trace.execute import Executor
from gemmsim.trace.steady.affine import Walk
from gemmsim.trace.steady.control import is_together
from gemmsim.trace.steady.followed import Followed
from gemmsim.trace.steady.lengths import MOST_PERIODS, lengths_of, periods_until_all_wrap
from gemmsim.trace.steady.operands import is_plain, masks_of
from gemmsim.trace.steady.paths import Path
from gemmsim.trace.steady.proofs import Proofs
from gemmsim.trace.steady.skip import _unit_of
from gemmsim.trace.steady.states import NotProvedError, States
from gemmsim.trace.steady.stops import Stops
from gemmsim.trace.types import Launch

ALL, MOST = 0xFFFFFFFF, 1000
WHOLE = Path(0, ALL)


def loop(*texts: str) -> tuple[Walk, np.ndarray, np.ndarray]:
    """Return what follows a loop of these instructions, a warp's registers, all 0, and their steps."""
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate([*texts, "BRA 0x0", "EXIT"]))
    program = Program("loop", "loop", "sm_90", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    one = Executor(program, Launch((1, 1, 1), (32, 1, 1), (), parameters=()))
    first = one.initial.reshape(-1, 32).copy()
    return Walk(one.micro, one.code), first, np.zeros_like(first)


@pytest.mark.parametrize(("stream", "lengths"), [
    (list(range(10)) * 6, [10]),  # of the last 20 two are looked at
    ((list(range(10)) * 6)[1:], []),  # 19 hold no two of ten
    ([1, 2, 3] * 20, [3]),  # and not 6 and 9, which are three twice and three times
    ([7] * 100 + [1, 2, 3] * 40, [3]),  # what came before the last third may be anything
    ([1, 2, 3] * 13 + [9] + [1, 2, 3] * 5, []),  # 55 with another one among the last 18, or those before them
    ([1, 1, 2] * 20, [3]),  # 1 alone does not come again through a third
    ([4] * 30, [1]),
    (list(range(60)), []),
    ([5], []),
])  # fmt: skip
def test_lengths_after_which_a_stream_comes_again(stream: list[int], lengths: list[int]) -> None:
    assert lengths_of(np.array(stream, np.int64)) == lengths


def test_three_lengths_are_tried_at_most() -> None:
    """After 1, 5 times 7 and so on: the end of 40 sevens comes again after each number up to 6, but 1 divides all."""
    assert lengths_of(np.array([7] * 120, np.int64)) == [1]
    assert lengths_of(np.tile([1, 2, 1, 2, 1, 3], 30).astype(np.int64)) == [6]


@pytest.mark.parametrize(("step", "periods"), [
    ([0, 0], MOST_PERIODS), ([1, 0], 2**32 - 1), ([0, 2**32 - 1], 2**32 - 1), ([4, 2**32 - 8], 2**29 - 1),
    ([1 << 31], 1), ([3], 2**32 // 3 - 1),
])  # fmt: skip
def test_words_go_round(step: list[int], periods: int) -> None:
    """The one that moves farthest, up or down, is back after 2**32 / step periods; one less is allowed."""
    assert periods_until_all_wrap(np.array(step, np.uint32)) == periods


@pytest.mark.parametrize(("periods", "period", "strides", "least", "unit"), [
    (2050, 100, {4}, 25_600, 1024),  # 1024 steps of 4 bytes are 4096; two units and a margin of two periods
    (2049, 100, {4}, 25_600, 256),  # too few: 256 steps are 1024 bytes
    (514, 100, {4}, 25_600, 256),
    (513, 100, {4}, 25_600, 0),  # 128 bytes need a unit of 32, but 25,600 instructions need 256
    (66, 100, {4}, 1, 32),  # a unit for 4096 or 1024 bytes has more than four times as many instructions as needed
    (65, 100, {4}, 1, 0),
    (10, 100, set(), 400, 4),
    (9, 100, set(), 400, 0),
    (4, 100, {4096, 8192}, 1, 1),
    (2050, 100, {4, 4096, 6}, 25_600, 512),  # 6 bytes come to 4096 only after 2048 steps, to 1024 after 512
    (2050, 100, {4}, 25_599, 256),  # 1024 periods are one instruction too many for four times the least
])  # fmt: skip
def test_units(periods: int, period: int, strides: set[int], least: int, unit: int) -> None:
    assert _unit_of(periods, period, strides, least) == unit


def spending(counters: np.ndarray, most: int) -> Callable[[], int]:
    """Return what executes as many instructions as the budget allows, `most` at most."""

    def go_on() -> int:
        ran = min(most, int(counters[words.BUDGET_LEFT]))
        counters[words.BUDGET_LEFT] -= ran
        return ran

    return go_on


def test_a_block_stops_where_it_is_told_to() -> None:
    counters = np.zeros(words.COUNTERS, np.int64)
    counters[words.BUDGET_LEFT] = 100
    between: list[int] = []

    def wanted() -> Iterator[int]:
        for after in (30, 50):
            yield after
            between.append(after)

    stops = Stops(counters, wanted())
    assert stops.run(spending(counters, 10)) == 10 and counters[words.BUDGET_LEFT] == 90
    assert stops.reached() and between == []  # not yet, but the budget is not spent either
    assert stops.run(spending(counters, 99)) == 20 and counters[words.BUDGET_LEFT] == 70
    assert stops.reached() and between == [30]
    assert stops.run(spending(counters, 99)) == 50 and stops.reached() and between == [30, 50]
    assert stops.run(spending(counters, 99)) == 20 and not stops.reached()


def test_a_budget_that_is_spent_before_a_stop_ends_the_block() -> None:
    counters = np.zeros(words.COUNTERS, np.int64)
    counters[words.BUDGET_LEFT] = 20
    stops = Stops(counters, iter([30]))
    assert stops.run(spending(counters, 99)) == 20 and not stops.reached()
    assert not Stops(counters, iter([])).reached()


def test_the_budget_is_given_back_where_a_block_fails() -> None:
    counters = np.zeros(words.COUNTERS, np.int64)
    counters[words.BUDGET_LEFT] = 100

    def fails() -> int:
        counters[words.BUDGET_LEFT] -= 5
        raise ZeroDivisionError

    stops = Stops(counters, iter([30]))
    with pytest.raises(ZeroDivisionError):
        stops.run(fails)
    assert counters[words.BUDGET_LEFT] == 95
    assert stops.run(spending(counters, 99)) == 25


@pytest.mark.parametrize(("word", "mask", "flip", "together"), [
    (0b1100, 0b1100, 0, True), (0b0100, 0b1100, 0, False), (0b1111, 0b1100, 0, True), (ALL ^ 0b1100, 0b1100, ALL, True),
    (ALL, 0b1100, ALL, False),
])  # fmt: skip
def test_threads_that_branch_together(word: int, mask: int, flip: int, together: bool) -> None:
    """The word is that of the lowest thread that runs, here lane 2."""
    first = np.zeros(64, np.uint32)
    first[32 + 2] = word
    row = [0] * micro.COLUMNS
    row[micro.SOURCE], row[micro.SOURCE_FLIP] = 32, flip
    states = States(first, np.zeros_like(first), 9, None)
    assert is_together(states, row, mask) == together
    states.forget([32])
    with pytest.raises(NotProvedError):
        is_together(states, row, mask)


def test_masks_of_operands() -> None:
    """Five operands, and the second words of those that are pairs; the first one of two that begin alike."""
    row = [0] * micro.COLUMNS
    for number, begin in enumerate((320, 640, 960, 320, 1280)):
        at = micro.SOURCE + number * micro.SOURCE_COLUMNS
        row[at : at + 3] = begin, 100 + number, 200 + number
    for begin, number in ((320, 0), (640, 1), (960, 2), (1280, 4)):
        assert masks_of(row, begin) == masks_of(row, begin + 32) == (100 + number, 200 + number)
    for other in (0, 100, 200, 1344):
        assert not is_plain(row, other)
        with pytest.raises(KeyError):
            masks_of(row, other)
    row[micro.SOURCE + 1 : micro.SOURCE + 3] = ALL, 0
    assert [at for at in (320, 352, 640, 960) if is_plain(row, at)] == [320, 352]


@pytest.mark.parametrize("condition", ["EQ", "NE"])
@pytest.mark.parametrize(("word", "step", "other", "periods"), [
    (0, 8, 80, 9), (80, -8, 0, 9), (0, 8, 81, None), (81, -8, 0, None), (-80, 8, 0, 9), (0, 8, -80, None),
    (8, 8, 0, None), (-8, -8, 0, None), (0, 8, 0, 0),
])  # fmt: skip
def test_words_that_move_meet_others(condition: str, word: int, step: int, other: int, periods: int | None) -> None:
    """In period n R4 is `word` + n `step` where it is compared: it is R5 in period 10, or never (None) before it has
    gone round."""
    text = f"ISETP.{condition}.AND P0, PT, R4, R5, PT"
    walk, first, moved = loop(text, f"IADD3 R4, R4, {'-' * (step < 0)}{hex(abs(step))}, RZ")
    first[4], first[5], moved[4] = word & ALL, other & ALL, step & ALL
    predicates = first.copy()
    found = walk.periods(first.reshape(-1), moved.reshape(-1), range(3), WHOLE, MOST)
    if found == 0 and periods != 0:  # P0 is another one before the first period
        predicates[_result(walk, 0)] = ALL * (condition == "NE")
        found = walk.periods(predicates.reshape(-1), moved.reshape(-1), range(3), WHOLE, MOST)
    assert found == (MOST if periods is None else periods)


def _result(walk: Walk, number: int) -> int:
    """Return the number of the register to which a micro-operation writes."""
    return walk._words[number][micro.RESULT] // 32


@pytest.mark.parametrize("lane", [0, 4])
def test_what_is_known_of_the_first_lane_is_known_of_all_that_get_its_word(lane: int) -> None:
    """R4 moves in all lanes. In other blocks it differs by vectors 5 and 6 in the first one that runs and in the next
    one; UR4, which gets the word of the first, then differs by vector 5 in all."""
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", "R2UR UR4, R4")
    uniform, blocks = _result(walk, 2), np.zeros(first.shape, np.int32)
    step[4], blocks[4, lane], blocks[4, lane + 1] = 8, 5, 6
    states = States(first.reshape(-1), step.reshape(-1), 9, blocks.reshape(-1))
    for number in (1, 2):  # an exchange, and a move of what it gave
        assert walk._step(states, number, Path(0, ALL >> lane << lane)) == number + 1
    assert states.blocks is not None
    assert (states.blocks.reshape(-1, 32)[uniform] == 5).all()
    assert (states.rows(32 * uniform)[:, 0] == np.array([[0], [8], [72]])).all()


def test_the_same_loop_is_proved_once_whatever_is_in_registers_that_it_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", "NOP")
    step[4] = 8
    asked: list[tuple[int, ...]] = []
    really = walk.periods

    def counted(*arguments: object) -> int:
        asked.append(tuple(arguments[6]))  # type: ignore[arg-type]
        return really(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(walk, "periods", counted)

    def one_warp() -> Followed:
        return Followed((0,), first.reshape(1, -1), step.reshape(1, -1), None)

    proofs = Proofs(walk)
    for word in (1, 2, 3, 4):
        first[6] = word
        assert proofs.periods(one_warp(), [0, 1, 2], WHOLE, MOST) == MOST
    assert asked == [(), (6 * 32,)]  # with R6 known, and once more with R6 not known: that holds for all others
    first[7, 31] = 1
    assert proofs.periods(one_warp(), [0, 1, 2], WHOLE, MOST) == MOST
    assert asked[2:] == [(6 * 32, 7 * 32)]


def test_proofs_of_ways_are_forgotten_that_were_not_asked_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three paths of one loop, two are kept."""
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", "NOP")
    step[4], asked = 8, 0
    really = walk.periods

    def counted(*arguments: object) -> int:
        nonlocal asked
        asked += 1
        return really(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(walk, "periods", counted)
    monkeypatch.setattr("gemmsim.trace.steady.proofs._MOST_WAYS", 2)
    proofs, followed = Proofs(walk), Followed((0,), first.reshape(1, -1), step.reshape(1, -1), None)
    for mask, times in ((1, 1), (3, 2), (1, 2), (7, 3), (1, 3), (3, 4), (7, 5), (3, 5)):
        assert proofs.periods(followed, [0, 1, 2], Path(None, mask), MOST) == MOST and asked == times, mask


def test_words_that_are_not_known_are_the_same_in_each_period() -> None:
    """So they need not be those that the first period began with; those that are known, and that move, must."""
    first, step = np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)
    step[40] = 8
    for place, unknown, sound in ((70, 64, True), (70, 32, False), (40, 32, False), (41, 32, True), (70, None, False)):
        states = States(first, step, 9, None)
        states.forget([] if unknown is None else [unknown])
        states.words[:, 0] = first + step * np.array([[1], [2], [10]], np.uint32)
        states.words[0, 0, place] += 1
        if sound:
            states.check_round(slice(0, 0))
        else:
            with pytest.raises(NotProvedError):
                states.check_round(slice(0, 0))
        states.check_round(slice(place, place + 1))  # or it is written before it is read
