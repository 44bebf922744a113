"""Iterations of steady loops that are counted and not executed: what is left is what the full execution does."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from expanded import expanded
from kept_leaders import check_recorded, check_rows
from programs import cuda_program

from gemmsim import api
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance
from gemmsim.trace.blocks import choice
from gemmsim.trace.blocks import classes as block_classes
from gemmsim.trace.blocks.classes import classes_of
from gemmsim.trace.differences.leader import BlockClass
from gemmsim.trace.execute import Executor
from gemmsim.trace.steady import skip
from gemmsim.trace.types import Argument, Launch, WarpTrace

GPU = load_gpu("a100")
RUNGS = [
    ("naive", (64, 64, 5000), {}),
    ("coalesced", (60, 70, 5003), {}),
    ("tiled", (64, 96, 8192), {}),
    ("tiled", (50, 70, 8199), {}),
    ("register_tiled", (64, 64, 6001), {}),
    ("blocktile_1d", (128, 64, 4096), {}),
    ("blocktile_2d", (128, 128, 4096), {}),
    ("double_buffered", (128, 256, 4096), {}),
    ("async_pipelined", (128, 256, 4104), {}),
    ("tensorcore_pipelined", (256, 256, 16384), {}),
    ("tensorcore_warptiled", (128, 256, 8192), {}),
    ("dgemm", (128, 192, 2048), {}),
    ("dgemm_tensorcore", (128, 192, 4096), {}),
]
N = 20_000
NOT_CUT = ("chain", "rare")
KERNELS = ("rows", "sums", "rare", "meets", "once", "chain", "ring", "rings", "stairs", "shifts", "hundreds", "dozens")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut loops that are cheap enough to be executed in full, too."""
    monkeypatch.setattr(skip, "HEAD", 1 << 15)
    monkeypatch.setattr(skip, "UNIT", 1 << 13)
    monkeypatch.setattr(skip, "_LEAST_ALONE", 1 << 11)


def spec_of(rung: str, sizes: tuple[int, int, int], tunables: dict[str, int]) -> LaunchSpec:
    dtype = "f16" if rung.startswith("tensorcore") else "f64" if rung.startswith("dgemm") else "f32"
    return ladder_launch(LadderCase(rung, *sizes, dtype, tunables), GPU, Settings())


def shapes(trace: WarpTrace) -> dict[tuple[int, int, bytes], float]:
    """How many accesses of the launch are of each instruction, mask and set of offsets."""
    key = trace.record_pc.astype(np.int64) << 32 | trace.record_pattern
    found, number = np.unique(key, return_inverse=True)
    counted = np.bincount(number, trace.record_weight)
    patterns = trace.patterns
    return {
        (one >> 32, int(patterns.active_mask[p := one & 0xFFFFFFFF]), patterns.offsets_bytes[p].tobytes()): times
        for one, times in zip(found.tolist(), counted.tolist(), strict=True)
    }


def places_in_full(times: np.ndarray) -> np.ndarray:
    """For each item of a warp, its place in the sequence in which units are repeated as often as `times` says."""
    edges = np.flatnonzero(np.diff(times)) + 1
    parts, place = [], 0
    for part in np.split(times, edges):
        parts.append(place + np.arange(len(part)))
        place += len(part) * (int(part[0]) if len(part) else 0)
    return np.concatenate(parts)


def check(executor: Executor, found: BlockClass, *, cut: bool) -> None:
    """Hold a class, and the trace of its leader with iterations left out, against full executions of two members."""
    whole = Executor(executor.program, executor.launch)
    left, full = executor.trace([found.leader]), whole.trace([found.leader])
    assert (left.repeats is not None) == cut
    assert (left.executed == full.executed).all() and (left.threads_executed == full.threads_executed).all()
    assert (found.executed == full.executed[0]).all()
    assert shapes(left) == shapes(full)
    assert np.array_equal(expanded(left), expanded(full))
    if left.repeats is None:
        return
    assert len(left.record_pc) < 0.7 * len(full.record_pc) or not len(full.record_pc) > 1000
    stand_for = np.diff(left.repeats.issued.before(np.arange(len(left.pc) + 1)))
    assert np.array_equal(np.bincount(left.pc, stand_for, left.executed.shape[1]), left.executed[0])
    member = int(found.members[-1])
    other = full if member == found.leader else whole.trace([member])
    moved = found.offset_bytes[:, -1][found.record_mover]
    assert (other.executed == full.executed).all()
    for warp in range(len(left.record_start) - 1):
        mine = slice(left.record_start[warp], left.record_start[warp + 1])
        place = full.record_start[warp] + places_in_full(left.repeats.of_record[mine])
        assert (full.record_pc[place] == left.record_pc[mine]).all()
        base = left.record_base[mine].astype(np.int64)
        assert (full.record_base[place].astype(np.int64) == base).all()
        assert (other.record_base[place].astype(np.int64) // 128 == (base + moved[mine]) // 128).all()


@pytest.mark.parametrize(("rung", "sizes", "tunables"), RUNGS, ids=lambda value: str(value).replace(" ", ""))
def test_ladder(rung: str, sizes: tuple[int, int, int], tunables: dict[str, int]) -> None:
    spec = spec_of(rung, sizes, tunables)
    program = compile_kernel(spec.kernel, spec.gpu.arch, default_cache())
    executor = Executor(program, spec.launch_with_arrays())
    executor.cutting.leaders = True
    classes = classes_of(executor)
    assert classes is not None
    assert sum(len(c.members) for c in classes) == executor.launch.blocks
    check_recorded(executor, [found.leader for found in classes])
    for found in classes[:2]:
        check(executor, found, cut=True)
        check_rows(executor, found.leader)


def tiles(size: int = 512) -> Executor:
    """Two blocks that compute the tiles of C, of 128 x 128, in turn."""
    spec = spec_of(
        "persistent", (size, size, 4096), {"blocks": 2, "group": 2}
    )  # an instance that other tests compile, too
    return Executor(compile_kernel(spec.kernel, spec.gpu.arch, default_cache()), spec.launch_with_arrays())


@cache
def tiles_in_full() -> np.ndarray:
    """How often both blocks of `tiles()` execute each instruction."""
    return tiles().trace([0, 1]).executed


def test_each_tile_of_a_block_is_cut() -> None:
    executor = tiles()
    executor.cutting.leaders = executor.cutting.again = True
    classes = classes_of(executor)
    assert classes is not None
    for found in classes:
        check(executor, found, cut=True)
        check_rows(executor, found.leader)
        cuts = executor.cutting.cuts[found.leader]
        left_out = sum(cut.times * cut.unit for cut in cuts)
        assert len(cuts) >= 8 and left_out > 0.8 * found.executed.sum()


@pytest.mark.parametrize("above", [0, 1 << 20])
def test_counts_of_many_tiles_are_those_of_the_full_execution(above: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is looked for again after `above` instructions, when the stream has not been recorded for a while."""
    monkeypatch.setattr(skip, "AGAIN_ABOVE", above)
    monkeypatch.setattr(skip, "_TRIES", 24)
    executor = tiles()
    counted = executor.counts([0, 1])
    assert counted is not None
    assert (counted[0] == tiles_in_full()).all()
    assert executor.cutting.left_out > 0.5 * tiles_in_full().sum()


def test_what_is_left_out_takes_nothing_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks of 19 million instructions, of which less than a fifth is executed, within a budget of 12 million."""
    for module in (skip, choice):
        monkeypatch.setattr(module, "AGAIN_ABOVE", 1 << 20)
    executor = tiles()
    executor.budget = 12_000_000
    found = choice.plan(executor, 2, 2)
    assert len(executor.trace(found.blocks, found.weight, found.streams).blocks) == len(found.blocks)


def test_a_block_is_counted_until_that_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends at a stop behind 4 million instructions of 19, of which most were left out; not before."""
    monkeypatch.setattr(skip, "AGAIN_ABOVE", 1 << 20)
    full = tiles().trace([0, 1]).executed
    assert (choice._executed(tiles(), [0, 1], None) == full).all()
    counted = choice._executed(tiles(), [0, 1], 4_000_000).sum(axis=1)
    assert ((counted >= 4_000_000) & (counted < 0.5 * full.sum(axis=1))).all()
    executor = tiles()
    assert (choice._executed(executor, [0, 1], 30_000_000) == full).all() and executor.cutting.enough is None


def test_what_is_refused_is_counted_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (skip, choice):
        monkeypatch.setattr(module, "AGAIN_ABOVE", 1 << 20)
    monkeypatch.setattr(choice, "classes_of", lambda _: None)
    executor = tiles()
    executor.budget = 12_000_000
    total = int(tiles().trace([0, 1]).executed.sum())
    with pytest.raises(GemmsimError, match=re.escape(f"about {total:.3g} warp instructions")):
        choice.plan(executor, 2, 2)


def test_what_is_left_out_makes_no_classes_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks with four and five tiles: the first executes less than a third of its 12 million instructions."""
    monkeypatch.setattr(block_classes, "_FEW_CLASSES", 0)
    monkeypatch.setattr(block_classes, "_MOST_INSTRUCTIONS", 4_000_000)
    executor = tiles(384)
    executor.cutting.leaders = executor.cutting.again = True
    found = classes_of(executor)
    assert found is not None and len(found) == 2
    executor.cutting.leaders = False
    assert classes_of(executor) is None


def steady(name: str, blocks: int, *args: Argument) -> Executor:
    one = Executor(cuda_program("steady.cu", name, "sm_80"), Launch((blocks, 1, 1), (64, 1, 1), args))
    one.cutting.leaders = True
    return one


@pytest.mark.parametrize("name", ["rows", "ring", "rings"])
def test_records_stand_for_the_places_to_which_the_block_goes(name: str) -> None:
    """Those of a ring come again to the same ones, however often."""
    a, out = Argument("f32", (N * 64,), np.zeros(N * 64)), Argument("f32", (64,), np.zeros(64))
    executor = steady(name, 1, a, out, Argument("i32", (), N))
    assert classes_of(executor) is not None
    left, full = executor.trace([0]), Executor(executor.program, executor.launch).trace([0])
    assert left.repeats is not None and left.repeats.of_record.max() > 10
    assert (left.repeats.step_bytes == 0).all() == (name != "rows")
    assert np.array_equal(expanded(left), expanded(full))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    """What is not steady in each block is not cut; what is, is the same in all blocks."""
    blocks = 12
    kind, c = ("i32", np.int32) if name == "chain" else ("f32", np.float32)
    a = Argument(kind, (N * 64,), np.arange(N * 64, dtype=c) % 64 if name == "chain" else np.zeros(N * 64, c))
    out = Argument(kind, (blocks * 64,), np.zeros(blocks * 64, c))
    rest = {"sums": (Argument("f32", (), 0.5),), "shifts": (Argument("i32", (), 3),)}.get(name, ())
    args = (*(() if name == "sums" else (a,)), out, Argument("i32", (), N), *rest)
    executor = steady(name, blocks, *args)
    classes = classes_of(executor)
    assert classes is not None
    if name == "meets":  # but for the last leader, with which no other block is compared
        assert set(executor.cutting.cuts) == {classes[-1].leader}
    full = Executor(executor.program, executor.launch).trace(range(blocks))
    executed = np.zeros_like(full.executed)
    for found in classes:
        executed[found.members] = found.executed
        if len(found.members) > 1:
            check(executor, found, cut=name not in NOT_CUT and name != "meets")
    assert (executed == full.executed).all()
    assert (sum(found.threads for found in classes) == full.threads_executed.sum(axis=0)).all()
    counted = executor.counts(range(blocks))
    assert counted is None or ((counted[0] == full.executed).all() and (counted[1] == full.threads_executed).all())
    # Addresses do not matter to counts, so those of loops are counted in which they decide, too.
    assert counted is not None and (executor.cutting.left_out > 0) == (name != "rare")


@pytest.mark.parametrize(("rung", "sizes"), [("tiled", (128, 256, 8192)), ("register_tiled", (256, 512, 4096))])
def test_counters_and_time(rung: str, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters marked exact are equal; caches and time, which are modelled, hardly differ; results are not checked."""
    spec = spec_of(rung, sizes, {})
    spec = replace(spec, settings=replace(spec.settings, full_below=0))
    full = api.analyze(spec, accesses=False)
    monkeypatch.setattr(choice, "CUT_ABOVE", 1000)
    left = api.analyze(spec, accesses=False)
    before, after = full.evidence, left.evidence
    exact = [name for name, how in before.provenance.items() if how is Provenance.EXACT]
    assert len(exact) > 20
    assert {name: after.counters[name] for name in exact} == {name: before.counters[name] for name in exact}
    assert before.executed == after.executed
    for name in ("lts__t_sectors_op_read.sum", "dram__sectors_read.sum"):
        assert after.counters[name] == pytest.approx(before.counters[name], rel=0.05)
    assert after.timing.duration_us == pytest.approx(before.timing.duration_us, rel=0.02)
    assert full.verified.ok and left.verified.ok is None
    assert "counted and not executed" in left.verified.text
    assert any("counted and not executed" in note.replace("\n", " ") for note in left.sampling.notes)


def test_full_executes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "CUT_ABOVE", 1000)
    spec = spec_of("tiled", (32, 32, 8192), {})
    assert api.analyze(replace(spec, settings=replace(spec.settings, full=True))).verified.ok
