"""How much the engines do a second, each alone, on launches of the ladder on an H200."""

from __future__ import annotations

import numpy as np
import pytest
from bench_launches import Rate, counted, launch_of
from trace_builder import alone

from gemmsim.isa.program import Program
from gemmsim.memory.caches.l1 import replay_l1
from gemmsim.memory.caches.l1_cache import l1_cache
from gemmsim.memory.caches.l2 import replay_l2
from gemmsim.memory.grid import footprint
from gemmsim.memory.grid.l1_requests import l1_requests_of
from gemmsim.memory.grid.placement import place
from gemmsim.memory.grid.residents import residents_of_grid
from gemmsim.memory.requests.access import Access, access_of
from gemmsim.memory.requests.banks import wavefronts
from gemmsim.memory.requests.coalescer import coalesce
from gemmsim.sm.budget import Simulator
from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.streams import RecordedStreams
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import WarpTrace

pytestmark = pytest.mark.bench

REQUESTS = 20_000
LANES = 32


@pytest.mark.parametrize("kernel", ["naive", "tiled", "warptiled", "tensorcore_pipelined"])
def test_executor(kernel: str, rate: Rate) -> None:
    """All blocks of a 256 GEMM, with the records and streams that the models want."""
    request, program = launch_of(kernel, 256), counted(kernel, 256).program
    launch = request.launch_with_arrays()
    blocks = range(launch.blocks)
    ones = [1.0] * len(blocks)

    def run() -> int:
        executor = Executor(program, launch)
        return int(executor.run(blocks, ones, [True] * len(blocks)).trace.executed.sum())

    rate(run, run(), "warp instructions")


def requests(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Requests whose lanes lie `step` bytes apart, each some way further on than the one before."""
    offsets = np.arange(LANES) * step + (np.arange(REQUESTS) % 8 * 16)[:, None]
    return offsets.astype(np.int64), np.ones((REQUESTS, LANES), bool)


@pytest.mark.parametrize("step_bytes", [4, 16, 128])
def test_coalescer(step_bytes: int, rate: Rate) -> None:
    offsets, active = requests(step_bytes)
    widths = np.full(REQUESTS, 4)
    rate(lambda: coalesce(offsets, active, widths), REQUESTS, "access shapes")


@pytest.mark.parametrize("width_bytes", [4, 16])
def test_banks(width_bytes: int, rate: Rate) -> None:
    offsets, active = requests(width_bytes)
    rate(lambda: wavefronts(offsets, active, width_bytes, merges=True), REQUESTS, "access shapes")


def accesses_of(program: Program, trace: WarpTrace) -> dict[int, Access]:
    found = {index: access_of(program.instructions[index]) for index in np.flatnonzero(trace.executed.any(axis=0))}
    return {int(index): access for index, access in found.items() if access is not None}


def test_l1_and_l2_replay(rate: Rate) -> None:
    """Every access of a naive 256 GEMM; the rate counts the warps' requests, not the sectors."""
    request, done = launch_of("naive", 256, full=True), counted("naive", 256, full=True)
    trace, shapes, gpu = done.execution.trace, done.traffic.shapes, request.gpu
    requests = l1_requests_of(trace, shapes, accesses_of(done.program, trace))
    placement = place(alone(len(trace.blocks)), gpu.sm, done.occupancy.blocks_per_sm)
    residents = residents_of_grid(trace.blocks, placement)
    l2, near = gpu.l2, residents.sm % gpu.l2.partitions
    cache = l1_cache(gpu.l1.unified_bytes - done.occupancy.carveout_bytes, gpu.l1)
    group = np.arange(len(requests.pc))

    def run() -> None:
        l1 = replay_l1(requests, residents, shapes.coalesced, cache)
        replay_l2(l1.to_l2, group, l2, near)

    rate(run, len(requests.pc), "requests")


@pytest.mark.parametrize("size", [1024, 4096])
def test_footprint(size: int, rate: Rate) -> None:
    """The estimate of L2 and DRAM traffic; the rate counts blocks of the grid."""
    request, done = launch_of("tiled", size), counted("tiled", size)
    trace, launch, shapes = done.execution.trace, request.launch, done.traffic.shapes
    requests = l1_requests_of(trace, shapes, accesses_of(done.program, trace))
    assert trace.relation is not None
    relation, instructions = trace.relation, trace.executed.shape[1]
    wave = footprint.Wave(request.gpu.sm.count * done.occupancy.blocks_per_sm, request.gpu.l2, warm=False)

    def run() -> object:
        return footprint.estimate(relation, requests, shapes.coalesced, instructions, wave)

    assert rate(run, launch.blocks, "blocks", rounds=3) is not None


@pytest.mark.parametrize(("engine", "budget"), [("native", 1_000_000), ("simpy", 100_000)])
@pytest.mark.parametrize("kernel", ["naive", "tiled", "warptiled"])
def test_sm_model(kernel: str, engine: str, budget: int, rate: Rate) -> None:
    """One SM with all the blocks that it holds at once, of a 1024 GEMM."""
    request, done = launch_of(kernel, 1024), counted(kernel, 1024)
    gpu, resident = request.gpu, done.occupancy.blocks_per_sm
    table = instruction_table(done.program, gpu)
    streams = RecordedStreams(done.program, table, done.execution.trace, done.traffic.cost)
    clock_hz = gpu.clock.sm_load_hz

    def run() -> int:
        simulator = Simulator(table, gpu, streams, clock_hz, engine=engine)
        simulator.run(resident, resident, gpu.sm.count, gpu.sm.count, budget)
        return simulator.simulated_instructions

    rate(run, run(), "warp instructions", rounds=3)
