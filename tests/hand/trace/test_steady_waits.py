"""What is proved of loops in which warps wait at mbarriers, copy tiles, or run with some of their threads."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace import micro, words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.engine import plan_words
from gemmsim.trace.execute import Executor
from gemmsim.trace.steady.affine import Walk
from gemmsim.trace.steady.copies import _moved
from gemmsim.trace.steady.deciding import deciding, kept
from gemmsim.trace.steady.followed import Followed
from gemmsim.trace.steady.loop import Loop
from gemmsim.trace.steady.paths import Path, path_of
from gemmsim.trace.steady.proofs import Proofs, _Proof
from gemmsim.trace.steady.states import NotProvedError, States
from gemmsim.trace.types import Launch

MOST = 1000


def loop(*texts: str) -> tuple[Walk, np.ndarray, np.ndarray]:
    """Return what follows a loop of these instructions, its registers, all 0, and their steps."""
    lines = [*texts, "BRA 0x0", "EXIT"]
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate(lines))
    program = Program("loop", "loop", "sm_90", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    one = Executor(program, Launch((1, 1, 1), (32, 1, 1), (), parameters=()))
    first = one.initial.reshape(-1, 32).copy()
    return Walk(one.micro, one.code), first, np.zeros_like(first)


def periods(walk: Walk, first: np.ndarray, step: np.ndarray, count: int, path: Path) -> int:
    return walk.periods(first.reshape(-1), step.reshape(-1), range(count + 1), path, MOST)


@pytest.mark.parametrize(("text", "word", "step", "proved"), [
    ("IADD3 R4, R4, 0x8, RZ", 8, 8, MOST),
    ("IADD3 R4, R4, 0x8, RZ", 8, 4, 0),  # it moves by 8, whatever it seemed to do before
    ("IMAD R4, R4, 0x2, RZ", 8, 8, 0),  # 8, 16 and then 32
])  # fmt: skip
def test_registers_move_on_as_they_did(text: str, word: int, step: int, proved: int) -> None:
    walk, first, moved = loop(text)
    first[4], moved[4] = word, step
    assert periods(walk, first, moved, 1, Path(0, 0xFFFFFFFF)) == proved


def test_instructions_lead_to_one_another() -> None:
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", "NOP")
    step[4] = 8
    whole = Path(0, 0xFFFFFFFF)
    assert periods(walk, first, step, 2, whole) == MOST
    for other in ([0, 2], [0, 1], [1, 2, 0], [0, 0, 1, 2]):
        assert walk.periods(first.reshape(-1), step.reshape(-1), other, whole, MOST) == 0
    assert walk.periods(first.reshape(-1), step.reshape(-1), [1, 2, 0], Path(1, 0xFFFFFFFF), MOST) == MOST


@pytest.mark.parametrize("lane", [0, 4])
def test_the_first_lane_of_a_word_that_moves_moves(lane: int) -> None:
    """R2UR takes the word of the lowest of the threads that run, for all lanes."""
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", "R2UR UR4, R4")
    mask = 0xFFFFFFFF >> lane << lane
    first[4], step[4, lane:] = np.arange(32) * 100, 8
    uniform = _result(walk, 2) // 32
    first[uniform], step[uniform] = 100 * lane, 8
    assert periods(walk, first, step, 2, Path(0, mask)) == MOST
    first[uniform] = 100 * lane + 4
    assert periods(walk, first, step, 2, Path(0, mask)) == 0


def test_other_exchanges_of_words_that_move_are_not_followed() -> None:
    for text, proved in (("SHFL.IDX PT, R5, R4, RZ, 0x1f", 0), ("SHFL.IDX PT, R5, R6, RZ, 0x1f", MOST)):
        walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", text)
        step[4] = 8
        assert periods(walk, first, step, 2, Path(0, 0xFFFFFFFF)) == proved


def warp(active: int, *paths: tuple[int, int, int, int]) -> np.ndarray:
    row = np.zeros(words.WARP_WORDS, np.int64)
    row[words.PC], row[words.ACTIVE], row[words.PATH_COUNT] = 7, active, len(paths)
    for number, path in enumerate(paths):
        row[words.PATHS_AT + words.PATH_WORDS * number :][: words.PATH_WORDS] = path
    return row


def test_one_path_of_a_warp_runs() -> None:
    held = (9, 0xFE, words.WAIT_CONVERGENCE, 320)
    assert path_of(warp(0xFF)) == Path(7, 0xFF)
    assert path_of(warp(0, (9, 0xFF, words.WAIT_BLOCK, 0))) == Path(9, 0xFF)
    assert path_of(warp(1, held)) == Path(7, 1, frozenset({320}))
    assert path_of(warp(0, held, (5, 1, words.RUNNABLE, 0))) == Path(5, 1, frozenset({320}))
    assert path_of(warp(1, (9, 0xFE, words.RUNNABLE, 0))) is None
    assert path_of(warp(0, held, (5, 1, words.WAIT_BLOCK, 0))) is None
    assert path_of(warp(0, held, (5, 1, words.RUNNABLE, 0), (6, 0x100, words.RUNNABLE, 0))) is None


def test_threads_that_wait_must_not_be_joined() -> None:
    walk, first, step = loop("BSSY B2, 0x0", "BSYNC B2")
    for holds, proved in ((frozenset[int](), MOST), (frozenset({_result(walk, 0)}), 0)):
        assert periods(walk, first, step, 2, Path(0, 1, holds)) == proved


def _result(walk: Walk, number: int) -> int:
    """Return where the row begins to which a micro-operation writes."""
    return walk._words[number][micro.RESULT]


def plan(place: int, size: int) -> np.ndarray:
    """A tile of 64 elements along one dimension, of which every second one is copied."""
    made = np.zeros(plan_words.PLAN_WORDS, np.int64)
    made[plan_words.SIZE], made[plan_words.STRIDE], made[plan_words.BOX] = size, 2, 32
    made[plan_words.STEP], made[plan_words.PLACE] = 2, place
    return made


@pytest.mark.parametrize(("place", "step", "size", "left"), [
    (0, 64, 64 * 100, None), (0, 64, 64 * 100 - 1, None), (0, 64, 64 * 100 - 2, 98), (6336, -64, 6400, None),
    (6335, -64, 6400, 98), (-1, 64, 6400, 0), (6400, -64, 6400, 0), (6338, -64, 6400, 0),
])  # fmt: skip
def test_tiles_that_move_are_in_the_array(place: int, step: int, size: int, left: int | None) -> None:
    """100 tiles, of which the last element is the 62nd one behind the first."""
    states = States(np.zeros(32, np.uint32), np.zeros(32, np.uint32), 99, None)
    plans = [plan(place + n * step, size) for n in (0, 1, 99)]
    if left is None:
        assert _moved(states, plans, [0]) == 2 * step
        return
    with pytest.raises(NotProvedError) as error:
        _moved(states, plans, [0])
    assert error.value.periods == left


def test_a_proof_holds_for_other_blocks_that_differ_alike() -> None:
    """What differs by one vector may differ by another one or not at all; words must not come to differ, or apart."""
    nothing = np.zeros(32, np.uint32)
    known = np.zeros(32, np.int32)
    known[:4] = 5, 5, 6, 6
    read = np.ones(32, bool)
    read[31] = False
    proof = _Proof(nothing, nothing, known, read, 9, frozenset(), (), {})

    def holds(*blocks: int, last: int = 0) -> bool:
        row = np.zeros(32, np.int32)
        row[:4], row[31] = blocks, last
        return proof.holds(nothing, nothing, row)

    assert holds(5, 5, 6, 6) and holds(7, 7, 3, 3) and holds(7, 7, 7, 7) and holds(0, 0, 6, 6) and holds(6, 6, 5, 5)
    assert holds(5, 5, 6, 6, last=4)
    assert not holds(5, 7, 6, 6) and not holds(5, 5, 0, 6)
    known[3] = 0
    assert not holds(5, 5, 6, 6)
    other = nothing.copy()
    other[31] = 1
    assert proof.holds(other, nothing, None) and not proof.holds(nothing, other, None)
    other[30] = 1
    assert not proof.holds(other, nothing, None)
    assert not _Proof(nothing, nothing, None, read, 9, frozenset(), (), {}).holds(nothing, nothing, known)


def test_a_loop_is_found_again() -> None:
    """Its stream comes again after 3 instructions, its registers after 12; one of them moves by 40, 10 for each 3."""
    stream = np.tile([1, 2, 3], 4).astype(np.int64)
    registers, step = np.zeros((1, 32), np.uint32), np.zeros((1, 32), np.uint32)
    registers[0, 5], step[0, 5] = 1000, 40
    one = Loop(3, stream, registers, step, 5, 0)
    assert [one.until_same(np.roll(stream, -n)) for n in range(4)] == [0, 2, 1, 0]
    assert one.until_same(stream[:6]) is None and one.until_same(stream + 1) is None
    now = registers.copy()
    for word, lengths in ((1000, 0), (990, 1), (880, 12), (1020, -2), (995, None)):
        now[0, 5] = word
        assert one.lengths_before(now) == lengths


@pytest.mark.parametrize(("stored", "proved"), [("R6", MOST), ("R4", 0)])
def test_what_is_loaded_may_decide_where_nothing_that_moves_is_stored(stored: str, proved: int) -> None:
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", f"STL [R7], {stored}", "LDL R8, [R7]")
    step[4] = 8
    assert periods(walk, first, step, 3, Path(0, 0xFFFFFFFF)) == proved
    step[7] = 4
    assert periods(walk, first, step, 3, Path(0, 0xFFFFFFFF)) == 0


def test_a_shuffle_by_an_index_that_moves_is_not_followed() -> None:
    """Lanes 0, 1 and 8, from which it takes a word in the first two periods and in the last, have the same."""
    walk, first, step = loop("IADD3 R6, R6, 0x1, RZ", "SHFL.IDX PT, R5, R4, R6, 0x1f")
    first[4] = np.arange(32)
    first[4, [1, 2, 9]] = first[5] = 7
    step[6] = 1
    assert periods(walk, first, step, 2, Path(0, 0xFFFFFFFF)) == 0


def test_groups_that_all_warps_of_a_warpgroup_close_decide_nothing() -> None:
    state = BlockState(np.zeros((8, 32), np.uint32), 64, 4, 1)
    counters = np.zeros(words.COUNTERS, np.int64)
    before = kept(deciding(state, counters, None))
    state.warps[4:, words.GROUPS] += 3
    state.phases[2], state.barriers[words.EVENTS] = 5, 9
    assert all(map(np.array_equal, before, deciding(state, counters, None)))
    for place, word in ((state.warps, (6, words.GROUPS)), (state.warps, (1, words.ARRIVALS)), (state.shared, 3)):
        place[word] += 1
        assert not all(map(np.array_equal, before, deciding(state, counters, None)))
        place[word] -= 1


@pytest.mark.parametrize(
    ("span", "proved"), [((0, 99), MOST), ((-50, 99), MOST), ((0, 100), 0), ((-51, 0), 0), (None, 0)]
)
def test_other_blocks_compare_alike_within_the_bounds_of_their_differences(
    span: tuple[int, int] | None, proved: int
) -> None:
    """R6, 50 and no less in any block, is below 150, or R4 comes to what it is compared with."""
    compares = "ISETP.GE.U32.AND P0, PT, R6, 0x96, PT", "ISETP.GE.U32.OR P0, PT, R4, 0xffff, P0"
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", *compares)
    first[6], step[4] = 50, 8
    blocks = np.zeros_like(first, dtype=np.int32)
    blocks[6] = 9
    lanes = first.reshape(-1), step.reshape(-1), range(4), Path(0, 0xFFFFFFFF), MOST, blocks.reshape(-1)
    assert walk.periods(*lanes, (), lambda number: span if number == 9 else None) == proved
    assert not proved or walk.bounded == {9: span}


def test_a_word_that_is_negated_differs_by_another_vector() -> None:
    """R7 is minus R6, by which blocks differ: what is the same in one of them need not be in others."""
    walk, first, step = loop("IADD3 R7, R4, -R6, RZ", "ISETP.GE.U32.AND P0, PT, R7, R8, PT", "IADD3 R4, R4, 0x8, RZ")
    step[4] = step[7] = 8
    blocks = np.zeros_like(first, dtype=np.int32)
    blocks[6] = blocks[7] = blocks[8] = 9
    first[4], first[7], first[8] = 8, 0, 0xFFFF
    lanes = first.reshape(-1), step.reshape(-1), range(4), Path(0, 0xFFFFFFFF), MOST
    assert walk.periods(*lanes) == MOST and walk.periods(*lanes, blocks.reshape(-1)) == 0


def test_a_proof_holds_where_differences_are_within_those_of_the_proof() -> None:
    nothing, known = np.zeros(32, np.uint32), np.zeros(32, np.int32)
    known[3] = 5
    proof = _Proof(nothing, nothing, known, np.ones(32, bool), 9, frozenset(), (), {5: (-4, 8)})
    for number, span, holds in ((5, (-4, 8), True), (5, (-4, 9), False), (7, (0, 3), True), (7, (-5, 0), False)):
        now = known.copy()
        now[3] = number
        assert proof.holds(nothing, nothing, now, {number: span}.get) == holds
    assert proof.holds(nothing, nothing, np.zeros(32, np.int32), lambda _: None)


def test_words_that_wrap_around_in_other_blocks_are_not_known_to_compare_alike() -> None:
    """16 below 2**32 is no less than 150, nor is 384, which is 400 more; what lies between may be."""
    compares = "ISETP.LT.U32.AND P0, PT, R6, 0x96, PT", "ISETP.GE.U32.OR P0, PT, R4, 0xffff, P0"
    walk, first, step = loop("IADD3 R4, R4, 0x8, RZ", *compares)
    first[6], step[4] = 0xFFFFFFF0, 8
    blocks = np.zeros_like(first, dtype=np.int32)
    blocks[6] = 9
    lanes = first.reshape(-1), step.reshape(-1), range(4), Path(0, 0xFFFFFFFF), MOST, blocks.reshape(-1)
    for most, proved in ((15, MOST), (400, 0)):
        assert walk.periods(*lanes, (), lambda _, most=most: (0, most)) == proved


@pytest.mark.parametrize("text", [
    "IADD3 R2, P0, R4, 0x8, RZ", "LEA R2, P0, R4, R6, 0x3",
    "ISETP.GE.U32.AND P0, PT, R4, R7, PT", "ISETP.NE.U32.AND P0, PT, R4, R7, PT", "SHF.R.U32.HI R2, RZ, 0x3, R4",
    "IMAD.WIDE.U32 R2, R4, R8, RZ",
])  # fmt: skip
def test_warps_are_proved_together_as_far_as_each_is_alone(text: str) -> None:
    """Whatever a walk has proved before: what it guesses from that changes nothing."""
    chance, (walk, none, moves), fresh = np.random.default_rng(len(text)), loop(text), loop(text)[0]
    moves[4], whole, seen = 8, Path(None, 0xFFFFFFFF), set()
    for _ in range(60):
        first = np.stack([none] * 3)
        near = 8 * chance.integers(2000, size=(3, 1)).astype(np.uint32)  # to 0, 2^28 or 2^32
        first[:, 4] = np.uint32(chance.choice([0, 1 << 28])) + near * chance.choice([-1, 1]).astype(np.uint32)
        first[:, 7] = first[:, 4] + 8 * chance.integers(2000, size=(3, 1)).astype(np.uint32)
        first[:, 8] = chance.choice([3, 0x28F5C28F, 0x80000000])
        alone = []
        for one in first:
            fresh._guesses.clear()
            alone.append(periods(fresh, one, moves, 1, whole))
        steps = np.stack([moves.reshape(-1)] * 3)
        together = walk.periods(first.reshape(3, -1), steps, range(2), whole, MOST)
        assert together == min(alone), (first[:, [4, 7, 8], 0], alone)
        seen.add(together)
    assert len(seen) > 1


def test_warps_that_part_are_not_proved_together() -> None:
    """Each goes on as it does: one stores, as R5 is less than 5 in it, and the other does not."""
    walk, first, step = loop("ISETP.LT.U32.AND P0, PT, R5, 0x5, PT", "@P0 IADD3 R6, R6, 0x8, RZ")
    whole = Path(None, 0xFFFFFFFF)
    two, moves = np.stack([first, first]), np.stack([step, step])
    two[1, 5] = 7
    moves[0, 6] = 8
    for one, moved in zip(two, moves, strict=True):
        assert periods(walk, one, moved, 2, whole) == MOST
    together = walk.periods(two.reshape(2, -1), moves.reshape(2, -1), range(3), whole, MOST)
    assert together == 0
    followed = Followed((0, 1), two.reshape(2, -1), moves.reshape(2, -1), None)
    assert Proofs(walk).periods(followed, range(3), whole, MOST) == MOST
