"""Blocks that wait at mbarriers: the loops of their tiles are counted, and what is left is what the full run does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from expanded import expanded
from kept_leaders import check_recorded, check_rows

from gemmsim import api
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import LaunchSpec, Settings
from gemmsim.support.provenance import Provenance
from gemmsim.trace import endless, words
from gemmsim.trace.blocks import choice
from gemmsim.trace.blocks.classes import classes_of, cluster_classes_of
from gemmsim.trace.differences.leader import BlockClass
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.execute import Executor
from gemmsim.trace.one_by_one import counts_one_by_one, run_in_order
from gemmsim.trace.steady import tiles
from gemmsim.trace.types import WarpTrace

GPU = load_gpu("h200")
RUNGS = [
    ("wgmma_persistent", (512, 1024, 8192), {"blocks": 4}),
    ("wgmma_persistent", (640, 1024, 8192), {"blocks": 4, "stages": 3, "tile_n": 128}),
    ("wgmma_cluster", (512, 1024, 8192), {"blocks": 4}),
    ("wgmma_persistent", (576, 960, 8192), {"blocks": 4, "group": 2}),
    ("wgmma_fp8", (512, 1024, 16384), {"blocks": 4}),
    ("wgmma_specialised", (128, 256, 32768), {}),
]
IDS = [str(rung).replace(" ", "") for rung in RUNGS]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut loops that are cheap enough to be executed in full, too."""
    monkeypatch.setattr(tiles, "WHOLE", 40_000)
    monkeypatch.setattr(tiles, "WINDOW", 3 << 13)


def spec_of(rung: str, sizes: tuple[int, int, int], tunables: dict[str, int]) -> LaunchSpec:
    dtype = {"wgmma_fp8": "e4m3", "tiled": "f32"}.get(rung, "f16")
    return ladder_launch(LadderCase(rung, *sizes, dtype, tunables), GPU, Settings())


def executor_of(rung: str, sizes: tuple[int, int, int], tunables: dict[str, int]) -> Executor:
    spec = spec_of(rung, sizes, tunables)
    return Executor(compile_kernel(spec.kernel, spec.gpu.arch, default_cache()), spec.launch_with_arrays())


@cache
def cut(number: int) -> tuple[Executor, tuple[BlockClass, ...]]:
    """An executor of RUNGS[number] that has found the classes of its blocks, and cut their leaders."""
    executor = executor_of(*RUNGS[number])
    executor.cutting.leaders = True
    classes = cluster_classes_of(executor) if executor.blocks_meet else classes_of(executor)
    assert classes is not None and sum(len(c.members) for c in classes) == executor.launch.blocks
    run_in_order(executor)
    return executor, classes


@cache
def whole(number: int) -> Executor:
    executor = executor_of(*RUNGS[number])
    run_in_order(executor)
    return executor


@cache
def in_full(number: int, block: int) -> WarpTrace:
    """The trace of a block of RUNGS[number] of which nothing is left out."""
    return whole(number).trace([block])


def syncs(trace: WarpTrace) -> list[tuple[int, ...]]:
    """What a trace's warps did at mbarriers: (warp, position, barrier, phase, bytes)."""
    s = trace.syncs
    assert s is not None
    warp = np.repeat(np.arange(len(s.start) - 1), np.diff(s.start))
    return list(zip(warp.tolist(), s.at.tolist(), s.barrier.tolist(), s.phase.tolist(), s.bytes.tolist(), strict=True))


@pytest.mark.parametrize("number", range(len(RUNGS)), ids=IDS)
def test_what_is_left_stands_for_the_full_execution(number: int) -> None:
    """Of each leader and of another member of its class: counts, and the address of each access."""
    executor, classes = cut(number)
    for found in classes:
        assert executor.cutting.left_out_of(found.leader) > 0.2 * found.executed.sum()
        left, full = executor.trace([found.leader]), in_full(number, found.leader)
        assert (left.executed == full.executed).all() and (left.threads_executed == full.threads_executed).all()
        assert (found.executed == full.executed[0]).all()
        assert left.repeats is not None and len(left.record_pc) < 0.9 * len(full.record_pc)
        assert np.array_equal(expanded(left), expanded(full))
        stand_for = np.diff(left.repeats.issued.before(np.arange(len(left.pc) + 1)))
        assert np.array_equal(np.bincount(left.pc, stand_for, left.executed.shape[1]), left.executed[0])
        moved = found.offset_bytes[:, -1][found.record_mover]
        there = replace(left, record_base=(left.record_base.astype(np.int64) + moved).astype(np.uint64))
        other = in_full(number, int(found.members[-1]))
        assert np.array_equal(expanded(there), expanded(other)) and (other.executed == full.executed).all()
        check_rows(executor, found.leader)


def test_phases_go_on_where_iterations_are_left_out() -> None:
    """Each wait of what is left finds the arrivals of its phase there, too, as if there were no more iterations."""
    executor, (found, *_) = cut(0)
    left, full = executor.trace([found.leader]), in_full(0, found.leader)
    begun = [[row for row in syncs(trace) if row[1] < 500] for trace in (left, full)]
    assert begun[0] == begun[1] and len(begun[0]) > 100
    s = left.syncs
    assert s is not None
    for barrier in np.unique(s.barrier[s.barrier >= 0]):
        phase = s.phase[s.barrier == barrier]
        assert np.array_equal(np.unique(phase[phase >= 0]), np.arange(phase.max() + 1))


def test_a_block_whose_stream_nobody_wants_leaves_nothing_of_it() -> None:
    executor, (found, *_) = cut(1)
    leader = found.leader
    alone, twice = executor.trace([leader]), executor.trace([leader, leader], streams=[False, True])
    assert leader in executor.cutting.cuts
    assert syncs(alone) == [(warp - executor.launch.warps_per_block, *rest) for warp, *rest in syncs(twice)]


@pytest.mark.parametrize("number", range(2, 5), ids=IDS[2:5])
def test_leaders_that_are_not_executed_again_leave_what_they_would(number: int) -> None:
    """Of the first trace only the leader with a stream is executed; for the second one all are."""
    executor = executor_of(*RUNGS[number])
    executor.cutting.leaders = True
    classes = cluster_classes_of(executor) if executor.blocks_meet else classes_of(executor)
    assert classes is not None and len(classes) > 1
    run_in_order(executor)
    check_recorded(executor, [found.leader for found in classes])


@pytest.mark.parametrize("number", range(3), ids=IDS[:3])
def test_counts_of_blocks(number: int) -> None:
    executor = executor_of(*RUNGS[number])
    counted = counts_one_by_one(executor, [0, 1])
    assert counted is not None and executor.cutting.left_out > 0.2 * counted.sum()
    assert (counted == [in_full(number, block).executed[0] for block in (0, 1)]).all()


@pytest.mark.parametrize(("rung", "sizes", "tunables"), RUNGS[1:3], ids=lambda value: str(value).replace(" ", ""))
def test_counters(
    rung: str, sizes: tuple[int, int, int], tunables: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All counters are equal, as each access is known; the time hardly differs."""
    spec = spec_of(rung, sizes, tunables)
    spec = replace(spec, settings=replace(spec.settings, full_below=0))
    monkeypatch.setattr(choice, "_FEW", 0)  # a sample, too, where all is executed
    full = api.analyze(spec, accesses=False)
    monkeypatch.setattr(choice, "CUT_ABOVE", 1000)
    monkeypatch.setattr(choice, "_pays", lambda *_: True)
    left = api.analyze(spec, accesses=False)
    before, after = full.evidence, left.evidence
    assert left.verified.ok is None and before.executed == after.executed
    exact = [name for name, how in before.provenance.items() if how is Provenance.EXACT]
    assert len(exact) > 20
    assert {name: after.counters[name] for name in exact} == {name: before.counters[name] for name in exact}
    for name in ("lts__t_sectors_op_read.sum", "dram__sectors_read.sum"):
        assert after.counters[name] == pytest.approx(before.counters[name], rel=1e-9)


def order(executor: Executor) -> np.ndarray:
    """All instructions of block 0 in the order in which they were executed, each with its warp: int64 [2, executed]."""
    executor.buffers = Buffers(executor.launch.warps_per_block, executor.micro.accesses, executor.budget)
    executor.execute_blocks([0], np.ones(1, np.bool_))
    found, last = executor.buffers, int(executor.buffers.counters[words.SEGMENTS])
    stop = int(found.counters[words.ISSUED])
    length = np.diff(np.append(found.segment_start[:last], stop))
    return np.stack([np.repeat(found.segment_warp[:last], length), found.pc[:stop]])


@pytest.mark.parametrize("rung", ["wgmma_specialised", "wgmma_tma", "tiled"])
def test_a_block_that_stops_goes_on_where_it_was(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it stops, its warps run in the same order as without a stop."""
    executor = executor_of(rung, (128, 256, 1024) if rung != "tiled" else (32, 32, 512), {})
    whole = order(executor)
    for part in (997, 64):
        monkeypatch.setattr(endless, "PART", part)
        assert np.array_equal(order(executor), whole)


@pytest.mark.parametrize("rung", ["wgmma_specialised", "tiled"])
def test_a_slice_has_the_stream_of_the_program_wherever_it_stops(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instructions in a row that do nothing are executed at once, but for those behind a stop."""
    executor = executor_of(rung, (128, 256, 1024) if rung != "tiled" else (32, 32, 512), {})
    whole, run, stops = order(executor), executor.run_block, []

    def stopped(context: np.uint64) -> int:
        lent, issued = executor.buffers.counters[[words.BUDGET_LEFT, words.ISSUED]]
        status = run(context)
        if status == words.BUDGET and executor.context[words.STREAM]:
            stops.append(executor.buffers.counters[words.ISSUED] - issued == lent)
        return status

    assert executor.trace_slice is not None
    executor.context[words.CODE_AT] = executor.trace_slice.ctypes.data
    executor.run_block = stopped
    for part in (1 << 20, 997, 64, 3):
        monkeypatch.setattr(endless, "PART", part)
        assert np.array_equal(order(executor), whole)
    assert len(stops) > 3000 and all(stops)
