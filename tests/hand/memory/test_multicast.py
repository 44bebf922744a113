"""How many blocks get what a bulk load brings, how arithmetic is counted, and whose turn it is at L2: by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import launch, program, warp_trace

from gemmsim.gpu import load_gpu
from gemmsim.memory.caches.l2_loop import _step
from gemmsim.memory.requests.multicast import receivers
from gemmsim.memory.requests.tiles import reach_beyond
from gemmsim.memory.serve import serve
from gemmsim.trace.types import Syncs


def test_mbarriers_that_an_instruction_reaches() -> None:
    """Warp 0 executes 0, 1, 2, of which 1 reaches four; warp 1 executes 0, 2, 2, 1, which reach two, one and two."""
    trace = warp_trace(4, {0: [[], []]})
    assert receivers(trace).tolist() == [1, 1, 1, 1]
    nothing = np.zeros(9, np.int64)
    at = np.array([1, 1, 1, 1, 1, 1, 2, 3, 3])
    syncs = Syncs(np.array([0, 4, 9]), at, np.arange(9), *([nothing] * 6))
    trace = replace(trace, pc_start=np.array([0, 3, 7]), pc=np.array([0, 1, 2, 0, 2, 2, 1], np.int32), syncs=syncs)
    assert receivers(trace).tolist() == [1, (4 + 2) / 2, (2 + 1) / 2, 1]


@pytest.mark.parametrize(
    ("sectors", "moved", "maps", "beyond"),
    [([4, 4], 256, 1, False), ([4, 3], 256, 1, True), ([5, 4], 256, 1, False), ([4, 3], 256, 0, False)],
)
def test_tiles_that_reach_beyond_their_array(sectors: list[int], moved: int, maps: int, beyond: bool) -> None:
    """The second warp's copy leaves two records: with fewer sectors than 256 bytes fill, a part of the tile is beyond.
    More are of rows that are not aligned. A run of bytes, which has no map, is never beyond. The first warp's is whole.
    """
    lanes = [4 * lane for lane in range(32)]
    trace = warp_trace(2, {0: [[(1, lanes)], [(1, lanes), (0, lanes), (1, lanes)]]})
    rows = ([128, moved], [1, 2], [maps, maps], [1, 1])
    syncs = Syncs(np.array([0, 1, 2]), np.array([0, 1]), np.arange(2), np.zeros(2), np.zeros(2), *map(np.array, rows))
    trace = replace(trace, pc_start=np.array([0, 1, 3]), pc=np.array([1, 0, 1], np.int32), syncs=syncs)
    assert reach_beyond(trace, np.array([False, True]), np.array([99, 4, *sectors]), np.array([1, 2, 0, 3])) is beyond


def test_threads_of_arithmetic_by_opcode() -> None:
    trace = warp_trace(4, {0: [[]]})
    trace = replace(trace, executed=np.array([[5, 7, 2, 1]]), threads_executed=np.array([[150, 200, 64, 1]]))
    code = program("FFMA", "FADD.FTZ", "FFMA.RM", "MOV")
    counters = serve(code, launch(), trace, load_gpu("a100"), 64 << 10, 1).counters
    found = {
        name: counters[f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"] for name in ("ffma", "fadd", "fmul")
    }
    assert found == {"ffma": 150 + 64, "fadd": 200, "fmul": 0}


@pytest.mark.parametrize(("sms", "step"), [(1, 1), (2, 3), (8, 5), (108, 67), (132, 83), (1000, 619)])
def test_turns_of_sms_are_far_apart(sms: int, step: int) -> None:
    """The golden part of the SMs and one more, or the next number that has no divisor in common with theirs."""
    assert _step(sms) == step
    assert len({n * step % sms for n in range(sms)}) == sms
