"""Classes of blocks: what is known of a block from the leader of its class is what it does when it is executed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gemmsim_validate.sampling import corpus
from programs import cuda_program

from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import LaunchSpec, Settings
from gemmsim.trace.blocks.classes import classes_of
from gemmsim.trace.differences import leader as following
from gemmsim.trace.differences.leader import BlockClass, Tables, relate
from gemmsim.trace.engine.differences import words
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Argument, Launch, WarpTrace, active_lanes

GPU = load_gpu("a100")
SOURCE = Path(__file__).parents[1] / "sources" / "block_numbers.cu"
EXPRESSIONS = re.findall(r"^KERNEL\((\w+)", SOURCE.read_text(), re.MULTILINE)
# More classes than one come from edges, from trips of loops that differ, and from branches on the block's number.
ORDERS = [
    ("row-major 2-D, 32", 1),
    ("grouped, 32", 1),
    ("snake, 32", None),
    ("Hilbert, 32", None),
    ("hashed, 32", None),
    ("table, 32", 1),
    ("every third block idle, 32", 2),
    ("triangular A, 32", 8),
    ("persistent, 32", None),
]


def executor_of(spec: LaunchSpec) -> Executor:
    program = compile_kernel(spec.kernel, spec.gpu.arch, default_cache())
    return Executor(program, spec.launch_with_arrays())


def addresses(trace: WarpTrace, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of each record, and whether each lane is active: both [records, 32]."""
    base = (trace.record_base.astype(np.int64) + moved)[:, None]
    return base + trace.patterns.offsets_bytes[trace.record_pattern], active_lanes(
        trace.patterns.active_mask[trace.record_pattern]
    )


def check(executor: Executor, found: BlockClass) -> None:
    leader = executor.trace([found.leader])
    threads = np.zeros_like(found.threads)
    for place, block in enumerate(found.members.tolist()):
        trace = executor.trace([block])
        assert (trace.executed[0] == found.executed).all() and (trace.record_pc == leader.record_pc).all()
        threads += trace.threads_executed[0]
        here, active = addresses(trace, np.zeros(len(trace.record_pc), np.int64))
        expected, same = addresses(leader, found.offset_bytes[found.record_mover, place])
        assert (active == same).all()
        assert (here >> 5 == expected >> 5)[active].all()  # sectors
        one_place = np.where(active, here, 1 << 62).min(axis=1) == np.where(active, here, 0).max(axis=1)
        assert (here == expected)[active & ~one_place[:, None]].all()
    assert (threads == found.threads).all()


@pytest.mark.parametrize(("text", "classes"), ORDERS)
def test_orders_of_tiles(text: str, classes: int | None) -> None:
    case = next(iter(corpus.cases([text], 256, ragged=False)))
    executor = executor_of(corpus.launch_spec(case, GPU, Settings()))
    found = classes_of(executor)
    assert found is not None
    assert classes is None or len(found) == classes
    members = np.sort(np.concatenate([c.members for c in found]))
    assert (members == np.arange(executor.launch.blocks)).all()
    for one in found:
        check(executor, one)


@pytest.mark.parametrize("kernel", ["tiled", "tensorcore_pipelined"])
def test_a_class_among_some_of_its_blocks_is_what_the_leader_is_compared_with_these_alone(kernel: str) -> None:
    """Among them are blocks at edges, which have fewer threads."""
    executor = executor_of(ladder_launch(LadderCase(kernel, 200, 333, 40), GPU))
    whole = relate(executor, 0, np.arange(executor.launch.blocks))
    fewer = whole.members[::2]
    among, alone = whole.among(fewer), relate(executor, 0, fewer)
    assert (among.members == alone.members).all() and (among.threads == alone.threads).all()
    assert (among.offset_bytes == alone.offset_bytes).all() and (among.record_mover == alone.record_mover).all()


@pytest.mark.parametrize("kernel", ["tiled", "tensorcore_pipelined"])
def test_a_memo_that_grows_is_what_a_large_one_is(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps what it knows: evaluations, of which there may be so many, are not made again."""
    executor, tables = executor_of(ladder_launch(LadderCase(kernel, 200, 333, 40), GPU)), []
    monkeypatch.setattr(following, "Tables", lambda *given: tables.append(Tables(*given)) or tables[-1])
    found = []
    for slots in (2, words.MOST_MEMO_SLOTS):
        monkeypatch.setattr(words, "FIRST_MEMO_SLOTS", slots)
        found.append(relate(executor, 0, np.arange(executor.launch.blocks)))
    grown, large = (vars(one) for one in found)
    assert all(np.array_equal(grown[name], large[name]) for name in large)
    known = [words.MEMO_USED, words.EVALUATIONS_LEFT, words.USED]
    assert (tables[0].own[known] == tables[1].own[known]).all()
    used = int(tables[0].own[words.MEMO_USED])
    assert 8 < 2 * used <= tables[0].own[words.MEMO_SLOTS] <= 8 * used


@pytest.mark.parametrize("kernel", EXPRESSIONS)
def test_expressions_of_the_block_number(kernel: str) -> None:
    """Shifts across words, products, quotients and bits: what the rules of `differences.rules` are about."""
    args = (Argument("f32", (4096,), np.zeros(4096, np.float32)), Argument("u32", (), 7), Argument("i32", (), 300))
    executor = Executor(cuda_program("block_numbers.cu", kernel, "sm_80"), Launch((64, 1, 1), (64, 1, 1), args))
    found = classes_of(executor)
    assert found is not None
    assert (np.sort(np.concatenate([c.members for c in found])) == np.arange(64)).all()
    for one in found:
        check(executor, one)


@pytest.mark.parametrize(("kernel", "members"), [("counter_in_a_half", 64), ("counter_with_more", 1)])
def test_a_counter_beside_what_is_not_known(kernel: str, members: int) -> None:
    """All blocks go round as often as the leader, if the upper half of the word does not matter."""
    args = (Argument("f32", (4096,), np.zeros(4096, np.float32)), Argument("u32", (), 7), Argument("i32", (), 300))
    executor = Executor(cuda_program("block_numbers.cu", kernel, "sm_80"), Launch((64, 1, 1), (32, 1, 1), args))
    found = relate(executor, 0, np.arange(64))
    assert len(found.members) == members
    check(executor, found)


def test_blocks_that_look_up_where_they_store() -> None:
    """Those that would look outside of all arrays are not in the class."""
    numbers = np.arange(4096, dtype=np.uint32)
    args = (Argument("f32", (4096,), numbers.view(np.float32)), Argument("u32", (), 7), Argument("i32", (), 300))
    executor = Executor(cuda_program("block_numbers.cu", "looked_up", "sm_80"), Launch((64, 1, 1), (32, 1, 1), args))
    found = relate(executor, 5, np.arange(64))
    assert found.members.tolist() == list(range(32))
    check(executor, found)


@pytest.mark.parametrize("kernel", ["tiled", "naive", "blocktile_2d", "tensorcore_pipelined"])
def test_ragged_edges(kernel: str) -> None:
    executor = executor_of(ladder_launch(LadderCase(kernel, 200, 333, 40), GPU))
    found = classes_of(executor)
    assert found is not None and len(found) > 1
    for one in found:
        check(executor, one)


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], int]]:
    """What says of each leader that is related how many operations were computed for every block."""
    made: list[Callable[[], int]] = []

    class Counted(following.Tables):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            allowed = int(self.own[words.EVALUATIONS_LEFT])
            made.append(lambda: allowed - int(self.own[words.EVALUATIONS_LEFT]))

    monkeypatch.setattr(following, "Tables", Counted)
    return made


def large(kernel: str, dtype: str, *sizes: int) -> Executor:
    return executor_of(ladder_launch(LadderCase(kernel, *sizes, dtype), load_gpu("h200"), Settings()))


def test_a_column_that_passes_4_gib(evaluations: list[Callable[[], int]]) -> None:
    """B has 8 GiB. Behind its middle, indices times 8 have more than 32 bits, in each block alike."""
    executor = large("dgemm_tensorcore", "f64", 64, 32768, 32768)
    found = classes_of(executor)
    assert found is not None and len(found) == 1 and len(found[0].members) == executor.launch.blocks
    assert evaluations[0]() < 1000
    check_ends(executor, found[0])


def test_bounds_are_those_of_the_blocks_that_are_left(evaluations: list[Callable[[], int]]) -> None:
    """C has 4 GiB: blocks for which its addresses carry are excluded, and in the others no sum has to be tried."""
    executor = large("uncoalesced_bt", "f32", 32768, 32768, 512)
    found = relate(executor, 640 * 1024 + 512, np.arange(0, executor.launch.blocks, 64))
    assert 10_000 < len(found.members) < 16_384
    assert evaluations[0]() < 500
    check_ends(executor, found)


def check_ends(executor: Executor, found: BlockClass) -> None:
    """Hold the first and the last block of a class against their own executions, as `check` does all."""
    ends = [0, len(found.members) - 1]
    trace = executor.trace([found.leader])
    for place in ends:
        own = executor.trace([int(found.members[place])])
        here, active = addresses(own, np.zeros(len(own.record_pc), np.int64))
        expected, same = addresses(trace, found.offset_bytes[found.record_mover, place])
        assert (own.executed[0] == found.executed).all() and (active == same).all()
        assert (here[active] == expected[active]).all()
