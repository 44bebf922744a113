"""A sample of blocks stands for a grid only where it gives the same counts as executing all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gemmsim.api import Counted, count, time
from gemmsim.compile.source import ArgType, PythonKernel
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch, ladder_source
from gemmsim.launch.ladder import kernel_info
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance
from gemmsim.trace.blocks import choice
from gemmsim.trace.types import Argument, Launch

GPU = load_gpu("a100")
SPLIT_K_GPU = load_gpu("h200")  # for which other tests compile these instances, too


def counted(kernel: str, m: int, n: int, k: int, tunables: dict[str, int], full: bool) -> Counted:
    info = kernel_info(kernel)
    random = np.random.default_rng(1)
    arrays = [random.random(shape, np.float32) for shape in ((m, k), (k, n), (m, n))]
    args = (*(Argument("f32", a.shape, a) for a in arrays), Argument("f32", (), 1.0), Argument("f32", (), 0.5))
    shape = info.launch(m, n, k, tunables)
    launch = Launch(shape.grid, shape.block, args)
    source = ladder_source(info, tunables, args)
    return count(LaunchSpec(source, launch, GPU, Labels(kernel), settings=Settings(full)))


@pytest.mark.parametrize(
    ("kernel", "tunables", "sizes"),
    [
        ("tiled", {"tile": 16}, (100, 208, 24)),  # edges in y only; blocks alternate inside 128-byte lines
        ("tiled", {"tile": 8}, (72, 130, 20)),  # edges in x; a period of four blocks
        ("naive", {}, (260, 200, 9)),
        ("coalesced", {}, (161, 225, 33)),
    ],
)
def test_sampled_counts_equal_full_counts(
    kernel: str, tunables: dict[str, int], sizes: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "FULL_BELOW", 0)
    m, n, k = sizes
    full = counted(kernel, m, n, k, tunables, full=True)
    sample = counted(kernel, m, n, k, tunables, full=False)
    assert not full.execution.sampled
    assert sample.execution.sampled and len(sample.execution.trace.blocks) < len(full.execution.trace.blocks)
    exact = [name for name, how in full.traffic.provenance.items() if how is Provenance.EXACT]
    assert len(exact) > 10
    assert {n: sample.traffic.counters[n] for n in exact} == {n: full.traffic.counters[n] for n in exact}


@pytest.mark.parametrize("atomics", [0, 1])
def test_blocks_that_wait_for_the_last_are_sampled_by_columns(atomics: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """6 tiles of C side by side, two blocks each: of a column one collects the sums, whichever columns are executed."""
    monkeypatch.setattr(choice, "FULL_BELOW", 0)
    case = LadderCase("split_k", 128, 6 * 128, 32, tunables={"splits": 2, "atomics": atomics})
    full, sample = (count(ladder_launch(case, SPLIT_K_GPU, Settings(all_of_it))) for all_of_it in (True, False))
    columns = {
        block % 6
        for block, weight in zip(sample.execution.trace.blocks, sample.execution.trace.weight, strict=True)
        if weight
    }
    assert sample.execution.sampled and len(columns) < 6
    exact = [name for name, how in full.traffic.provenance.items() if how is Provenance.EXACT]
    assert {n: sample.traffic.counters[n] for n in exact} == {n: full.traffic.counters[n] for n in exact}


@pytest.mark.parametrize("whole", [True, False])
def test_the_block_that_collects_the_sums_is_timed(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """6 tiles, 4 blocks each, 24 blocks on 108 SMs: the SM of the first column's last block, or all of a column."""
    monkeypatch.setattr(choice, "FULL_BELOW", 0)
    case = LadderCase("split_k", 128, 6 * 128, 64, tunables={"splits": 4, "atomics": 0})
    trace = count(ladder_launch(case, GPU, Settings(whole))).execution.trace
    instructions = trace.executed.reshape(len(trace.blocks), -1).sum(axis=1)
    lengths = np.diff(trace.pc_start)[:: trace.warps_per_block]
    timed = trace.blocks[lengths > 0]
    assert len(set((timed % 6).tolist())) == 1
    assert (timed // 6).tolist() == ([3] if whole else [0, 1, 2, 3])
    assert instructions[lengths > 0][-1] == instructions.max() > 1.2 * np.median(instructions)


KERNELS = '''
from numba import cuda

@cuda.jit
def uneven(a, b, c):
    """Block x adds the first a[x] elements: no two blocks alike."""
    total = 0.0
    for i in range(a[cuda.blockIdx.x]):
        total += b[i]
    c[cuda.blockIdx.x, cuda.threadIdx.x] = total
'''


def test_blocks_whose_data_decide_form_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 blocks, each of which repeats a loop as often as an array says: as many classes as numbers in it."""
    monkeypatch.setattr(choice, "FULL_BELOW", 0)
    (tmp_path / "k.py").write_text(KERNELS)
    blocks = 40
    lengths = np.random.default_rng(2).integers(1, 60, blocks, np.int32)
    arrays = (lengths, np.ones(64, np.float32), np.zeros((blocks, 32), np.float32))
    args = tuple(Argument({"f": "f32", "i": "i32"}[a.dtype.kind], a.shape, a) for a in arrays)
    source = PythonKernel(tmp_path / "k.py", "uneven", (ArgType("i32", 1), ArgType("f32", 1), ArgType("f32", 2)))
    launch = Launch((blocks, 1, 1), (32, 1, 1), args)
    sample, full = (
        count(LaunchSpec(source, launch, GPU, Labels("uneven"), settings=Settings(all_of_it)))
        for all_of_it in (False, True)
    )
    weight = sample.execution.trace.weight
    assert len(weight) == len(set(lengths.tolist())) and weight.sum() == blocks
    np.testing.assert_array_equal(full.execution.outputs[2][:, 7], lengths)
    exact = [name for name, how in full.traffic.provenance.items() if how is Provenance.EXACT]
    assert {n: sample.traffic.counters[n] for n in exact} == {n: full.traffic.counters[n] for n in exact}
    with pytest.raises(GemmsimError, match="a sample cannot stand for"):
        count(LaunchSpec(source, launch, GPU, Labels("uneven"), settings=Settings(max_instructions=3000)))


@pytest.mark.parametrize(
    "kernel",
    ["tiled", "register_blocked", "blocktile_1d", "dgemm", "dgemm_tensorcore", "igemm"],
)
def test_sampled_time_equals_the_time_of_all_blocks(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 1 %: the blocks that are timed share what DRAM brings with the others, whoever asks for it first.

    Which of two blocks of `tiled` is ahead changes with the least thing, and with it the time, by up to 8 %
    (deviation 8): the mean over lengths of a block's turn is held.
    """
    h200 = load_gpu("h200")
    turns = (0, 1, 2, 3, 4, 5, 6) if kernel == "tiled" else (h200.barrier.block_turn_cycles,)
    gpus = [replace(h200, barrier=replace(h200.barrier, block_turn_cycles=turn)) for turn in turns]

    def cycles(full: bool) -> float:
        requests = [ladder_launch(LadderCase(kernel, 512, 512, 512), gpu, Settings(full)) for gpu in gpus]
        counted = count(requests[0])  # which the turns do not change
        return sum(time(counted, request).cycles for request in requests)

    whole = cycles(True)
    monkeypatch.setattr(choice, "FULL_BELOW", 0)
    assert cycles(False) == pytest.approx(whole, rel=0.01)


def test_products_of_matrices_weigh_more() -> None:
    """2048^3 are 2**22 HMMA.16816, less than 12 million; each counts as 17, since it takes longer to execute."""
    case = LadderCase("tensorcore_pipelined", 2048, 2048, 2048)
    found = count(ladder_launch(case, load_gpu("h200")))
    executed = found.execution.trace.weight @ found.execution.trace.executed
    assert executed.sum() < choice.FULL_BELOW and found.execution.sampled


def test_edges_of_a_ragged_size_make_four_classes() -> None:
    """Each step along K has guards of its own: thousands of operations differ by block, and none is given up."""
    found = count(ladder_launch(LadderCase("blocktile_1d", 1000, 1000, 1000), load_gpu("h200")))
    assert sorted(found.execution.trace.weight.tolist()) == [1, 15, 15, 225]
