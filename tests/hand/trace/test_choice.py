"""Which blocks are executed, by hand: of launches that are made up, of which it is told what their blocks execute."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.blocks import choice
from gemmsim.trace.blocks.choice import Plan, plan
from gemmsim.trace.differences.leader import BlockClass
from gemmsim.trace.launch_data.clusters import Clusters
from gemmsim.trace.steady.skip import AGAIN_ABOVE, CUT_ABOVE
from gemmsim.trace.types import Launch

ATOMIC = "ATOMG.E.ADD.STRONG.GPU PT, R5, desc[UR4][R2.64], R5"
MULTIPLY = "HMMA.16816.F32 R12, R4, R8, R12"  # 16 x 8 x 16 products and sums, so 1 + 4,096 / 256 instructions


class Blocks(SimpleNamespace):
    """What `plan` asks of an executor, of a grid whose blocks execute each of these instructions so many times."""

    def __init__(
        self, grid: tuple[int, int, int], times: int, *texts: str, budget: int = 10**18, left_out: int = 0
    ) -> None:
        code = tuple(parse_instruction(16 * n, text, 0) for n, text in enumerate(texts or ("EXIT",)))
        known = {"cuts": {}, "allowed": True, "left_out": left_out, "left_out_of": lambda _: 0}
        cutting = SimpleNamespace(**known, forget=lambda: None)
        super().__init__(
            program=Program("made up", "", "sm_80", "c", code, (), 64, 0, 0, 1, (), 0),
            launch=Launch(grid, (32, 1, 1), ()),
            budget=budget,
            residents=False,
            blocks_meet=False,
            micro=SimpleNamespace(code=np.zeros((1, 64), np.int64)),
            cutting=cutting,
        )
        self.times = times

    def counts(self, blocks: Sequence[int]) -> tuple[np.ndarray, None]:
        return np.full((len(blocks), len(self.program.instructions)), self.times), None


def one_class(leader: int, members: Sequence[int], executed: int) -> BlockClass:
    nothing, more = np.zeros(0, np.int64), np.zeros((0, len(members)), np.int64)
    return BlockClass(leader, np.array(members), nothing, nothing, nothing, nothing, more, np.array([executed]), False)


def planned(
    monkeypatch: pytest.MonkeyPatch, blocks: Blocks, classes: Sequence[BlockClass] | None = None, **more: Any
) -> Plan:
    """The plan for an SM that holds two blocks, of four SMs. `classes` are what the blocks are found to be in."""
    found = None if classes is None else tuple(classes)
    monkeypatch.setattr(choice, "classes_of", lambda _: found)
    monkeypatch.setattr(choice, "column_classes_of", lambda _: found)
    monkeypatch.setattr(choice, "run_in_order", lambda _: None)
    return plan(blocks, 2, 4, **more)  # type: ignore[arg-type]


def test_a_launch_is_executed_in_full_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve blocks of 100 instructions."""
    classes = [one_class(5, range(12), 100)]
    assert planned(monkeypatch, Blocks((12, 1, 1), 100), classes, full_below=1200).blocks == tuple(range(12))
    assert planned(monkeypatch, Blocks((12, 1, 1), 100), classes, full_below=1199).blocks == (5,)
    assert planned(monkeypatch, Blocks((12, 1, 1), 100), classes, full_below=1199, full=True).weight == (1.0,) * 12


def test_the_usual_limit_is_of_12_million_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = [one_class(5, range(12), 1_000_000)]
    assert len(planned(monkeypatch, Blocks((12, 1, 1), 1_000_000), classes).blocks) == 12
    assert len(planned(monkeypatch, Blocks((12, 1, 1), 1_000_001), classes).blocks) == 1


def test_multiplications_of_matrices_count_as_several_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve blocks of 100 HMMA, which count as 17 each, and as many others."""
    classes = [one_class(5, range(12), 100)]
    for limit, executed in ((12 * 100 * 18, 12), (12 * 100 * 18 - 1, 1)):
        made = planned(monkeypatch, Blocks((12, 1, 1), 100, MULTIPLY, "EXIT"), classes, full_below=limit)
        assert len(made.blocks) == executed


def test_eight_blocks_are_executed_in_full_and_nine_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for blocks, executed in ((8, 8), (9, 1)):
        classes = [one_class(1, range(blocks), 100)]
        made = planned(monkeypatch, Blocks((blocks, 1, 1), 100), classes, full_below=0)
        assert len(made.blocks) == executed


@pytest.mark.parametrize("full", [True, False])
def test_all_blocks_may_execute_as_many_instructions_as_are_allowed(
    monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Twelve blocks of 100: because they all are asked for, or because no classes are found."""
    limit = {"full": full, "full_below": 0}
    assert len(planned(monkeypatch, Blocks((12, 1, 1), 100, budget=1200), **limit).blocks) == 12
    said = "would execute about 1.2e\\+03 warp instructions.* --max-instructions 1199"
    with pytest.raises(GemmsimError, match=said) as caught:
        planned(monkeypatch, Blocks((12, 1, 1), 100, budget=1199), **limit)
    assert ("leave out --full" in str(caught.value)) == full


def test_leaders_may_execute_as_many_without_those_that_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 and 300 instructions the two leaders leave out 20 and 60: they execute 320. With fewer allowed all blocks
    would have to be executed, which are 1,200, and too many as well."""
    classes = [one_class(1, range(11), 100), one_class(11, [11], 300)]

    def blocks(budget: int) -> Blocks:
        made = Blocks((12, 1, 1), 100, budget=budget)
        made.cutting.left_out_of = {1: 20, 11: 60}.__getitem__
        return made

    made = planned(monkeypatch, blocks(320), classes, full_below=0)
    assert (made.blocks, made.weight) == ((1, 11), (11.0, 1.0))
    with pytest.raises(GemmsimError, match="differ in ways that a sample cannot stand for"):
        planned(monkeypatch, blocks(319), classes, full_below=0)


def test_the_column_with_most_to_do_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a grid of 3 x 2 x 2 depend on those below them. Columns 0, 1 and 4 lead; the most work is that of block
    10, which stands for four: 10 is above 4."""
    sizes = {0: (1, 10), 1: (1, 10), 4: (4, 10), 6: (1, 30), 7: (1, 60), 10: (4, 20)}
    classes = [one_class(leader, [leader] * members, executed) for leader, (members, executed) in sizes.items()]
    made = planned(monkeypatch, Blocks((3, 2, 2), 100, ATOMIC), classes, full_below=0)
    assert made.columns
    assert [b for b, timed in zip(made.blocks, made.streams, strict=True) if timed] == [4, 10]
    assert made.blocks == tuple(sizes)


def test_blocks_that_depend_on_one_another_are_probed_along_z(monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle of 3 x 3 is block 4; the others of its column are 9 and 18 behind. Else the middle of all: 13."""
    asked: list[list[int]] = []

    class Watched(Blocks):
        def counts(self, blocks: Sequence[int]) -> tuple[np.ndarray, None]:
            asked.append(list(blocks))
            return super().counts(blocks)

    planned(monkeypatch, Watched((3, 3, 3), 100, ATOMIC), full=True)
    planned(monkeypatch, Watched((3, 3, 3), 100), full=True)
    assert asked == [[4, 13, 22], [13]]


@pytest.mark.parametrize(("texts", "sm"), [((), 0), ((ATOMIC,), 2)])
def test_of_all_blocks_those_of_one_sm_are_timed(
    monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...], sm: int
) -> None:
    """The first SM's; where blocks depend on those below them, those of the SM that gets the last block of the first
    column: 18 of 3 x 2 x 4, on SM 2 of four. An SM holds two at once: 18 is not among them."""
    made = planned(monkeypatch, Blocks((3, 2, 4), 100, *texts), full=True)
    assert [b for b, timed in zip(made.blocks, made.streams, strict=True) if timed] == [sm, sm + 4]
    assert made.columns == bool(texts)


def test_blocks_of_unequal_classes_are_timed_at_even_distances() -> None:
    """Of sixteen blocks in the order of what they execute, two are timed in the middle of each half, four in the middle
    of each quarter: blocks 2, 6, 10 and 14 of that order."""
    classes = [one_class(0, range(7), 30), one_class(7, range(7, 10), 10), one_class(10, range(10, 16), 20)]
    # in order: 3 of class 7, 6 of class 10, 7 of class 0; places 4 and 12, or 2, 6, 10 and 14
    assert choice._timed(tuple(classes), 1) == [10]
    assert sorted(choice._timed(tuple(classes), 2)) == [0, 10]
    assert sorted(choice._timed(tuple(classes), 4)) == sorted(choice._timed(tuple(classes), 9)) == [0, 7, 10]
    few = [one_class(n, [n], n) for n in range(16)]
    assert sorted(choice._timed(tuple(few), 4)) == sorted(choice._timed(tuple(few), 9)) == [2, 6, 10, 14]


@pytest.mark.parametrize(
    ("times", "left_out", "blocks", "leaders", "again"),
    [
        (CUT_ABOVE - 1, CUT_ABOVE, 12, False, False),
        (CUT_ABOVE, CUT_ABOVE, 12, False, False),
        (CUT_ABOVE + 1, CUT_ABOVE, 12, True, False),
        (CUT_ABOVE + 1, CUT_ABOVE // 2, 12, False, False),  # no more than half of them
        (CUT_ABOVE + 1, CUT_ABOVE // 2 + 1, 12, True, False),
        (AGAIN_ABOVE, AGAIN_ABOVE, 8, True, False),
        (AGAIN_ABOVE + 1, AGAIN_ABOVE, 9, True, True),
    ],
)
def test_steady_loops_of_leaders_are_cut_where_that_pays(
    monkeypatch: pytest.MonkeyPatch, times: int, left_out: int, blocks: int, leaders: bool, again: bool
) -> None:
    """In long blocks of which more than half was left out while they were counted; it must be done in few."""
    made = Blocks((blocks, 1, 1), times, left_out=left_out)
    chosen = planned(monkeypatch, made, [one_class(1, range(blocks), times)], full_below=0)
    assert len(chosen.blocks) == 1 or blocks <= 8
    assert (made.cutting.leaders, made.cutting.again, made.cutting.must) == (leaders, again, blocks <= 8)
    planned(monkeypatch, made, full=True)
    assert not made.cutting.leaders


def test_blocks_of_a_cluster_are_probed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle of 4 x 3 is block 5, of the cluster of blocks 4 and 5."""
    asked: list[list[int]] = []

    class Watched(Blocks):
        def counts(self, blocks: Sequence[int]) -> tuple[np.ndarray, None]:
            asked.append(list(blocks))
            return super().counts(blocks)

    made = Watched((4, 3, 1), 100, budget=1200)
    made.blocks_meet, made.clusters = True, Clusters((2, 1, 1), (4, 3, 1), True)
    assert len(planned(monkeypatch, made, full=True).blocks) == 12
    assert asked == [[4, 5]]
    made.budget = 1199
    with pytest.raises(GemmsimError, match="leave out --full"):
        planned(monkeypatch, made, full=True)


@pytest.mark.parametrize(("longest", "timed"), [(102, [1]), (103, [1, 11]), (1000, [1, 11])])
def test_where_blocks_have_unequal_work_those_of_the_last_sm_are_timed(
    monkeypatch: pytest.MonkeyPatch, longest: int, timed: list[int]
) -> None:
    """Of twelve blocks on four SMs, one block a place, the last one executes more than 2 % more than the others: the SM
    that gets blocks 3, 7 and 11 ends last. It has 200 instructions beside the longest block, and all have 1100."""
    classes = [one_class(1, range(11), 100), one_class(11, [11], longest)]
    made = planned(monkeypatch, Blocks((12, 1, 1), 100), classes, full_below=0)
    if longest > 102:
        (share,) = made.shares
        assert (share.blocks.tolist(), share.work.tolist()) == ([1, 1, 11], [100, 100, longest])
        assert share.active_sms == min(4, -(-(1100 + longest) // (200 + longest)))
    assert [b for b, timed in zip(made.blocks, made.streams, strict=True) if timed] == timed
