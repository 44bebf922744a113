"""Requests that merge on their way to L2, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import Accesses, Lanes, alone, launch, program, warp_trace

from gemmsim.gpu import load_gpu
from gemmsim.memory.caches.merging import in_step, kept, kept_by_tiles
from gemmsim.memory.grid.placement import place
from gemmsim.memory.serve import serve
from gemmsim.trace.types import Syncs

H200 = load_gpu("h200")
# Instruction 0 reads the same for all blocks of a row of the grid (A), 1 for all of a column (B), 2 for no two (C).
STEPS = np.array([[0, 128, 128], [4096, 0, 4096]])  # bytes for a block further along x and along y
LOAD, STORE = range(2)


def sm(*gpcs: int):  # type: ignore[no-untyped-def]
    return replace(H200.sm, count=sum(gpcs), gpc_sms=gpcs, early_sms=0)


def share(
    grid: tuple[int, int], gpcs: tuple[int, ...], resident: int = 1, requests: int = 4, steps: float = 0
) -> list[float]:
    """The shares of A, B and C after so many steps, of which 100 halve those of blocks alone on their SMs."""
    blocks = grid[0] * grid[1]
    placed = place(alone(blocks), sm(*gpcs), resident)
    places = np.stack([placed.first % grid[0], placed.first // grid[0]], axis=1) @ STEPS
    return (in_step(places, placed, requests) * kept(placed, steps, 100.0)).tolist()


def test_four_of_a_gpc_are_one() -> None:
    """4 x 2 blocks on two GPCs of 4: a row each. A: 4 requests become 1. No two blocks of a GPC share B or C."""
    assert share((4, 2), (4, 4)) == [0.75, 0, 0]


def test_more_than_four_are_several() -> None:
    """8 x 1 blocks on GPCs of 6 and 2: 6 requests for A become 2, the other 2 become 1."""
    assert share((8, 1), (6, 2))[0] == 1 - 3 / 8
    assert share((8, 1), (6, 2), requests=8)[0] == 1 - 2 / 8


def test_gpcs_do_not_merge() -> None:
    """2 x 2 blocks on GPCs of 2: rows lie in one GPC each (A: 2 become 1), columns in both."""
    assert share((2, 2), (2, 2)) == [0.5, 0, 0]


def test_sms_drift_apart_with_the_square_root_of_the_steps() -> None:
    assert share((4, 2), (4, 4), steps=100)[0] == 0.75 / 2
    assert share((4, 2), (4, 4), steps=400)[0] == 0.75 / 3


def test_blocks_of_an_sm_drift_as_if_they_had_made_as_many_steps_more() -> None:
    """16 x 1 blocks, two on each of 8 SMs: an SM asks for A once, 4 of a GPC become one while they are in step."""
    assert share((16, 1), (4, 4), resident=2)[0] == 0.75
    assert share((16, 1), (4, 4), resident=2, steps=50)[0] == 0.75 / 2
    assert share((8, 1), (4, 4), resident=2, steps=100)[0] == 0.75 / 2  # there is one an SM
    assert share((12, 1), (4, 4), resident=2, steps=50)[0] == 0.75 / 2  # four SMs have two


def test_tiles_merge_less_once_results_were_stored() -> None:
    """Four results, one after another: of the first all that could merges, of three a fifth each. Two blocks of an SM
    keep 1 / sqrt(2) of that."""
    assert kept_by_tiles(1, 0.2, 1) == 1
    assert kept_by_tiles(4, 0.2, 1) == pytest.approx((1 + 3 * 0.2) / 4)
    assert kept_by_tiles(4, 0.2, 2) == pytest.approx((1 + 3 * 0.2) / 4 / 2**0.5)
    assert kept_by_tiles(0, 0.2, 1) == 1  # a kernel that stores nothing


def clustered(multicast: bool) -> dict[str, float]:
    """Counters of clusters of two blocks on two GPCs of four SMs, of which each block loads the line of its cluster:
    those of even number line 0, the others line 1."""
    line = {number: [128 * number + 4 * lane for lane in range(32)] for number in range(2)}
    blocks: dict[int, list[Accesses]] = {b: [[(LOAD, line[b // 2 % 2])]] for b in range(8)}
    trace, zeros = warp_trace(1, blocks), np.zeros(16, np.int64)
    if multicast:  # each load tells two mbarriers
        syncs = Syncs(2 * np.arange(9), *([zeros] * 8))
        trace = replace(trace, syncs=syncs, pc=np.zeros(8, np.int32), pc_start=np.arange(9))
    code = replace(program("UTMALDG.2D"), arch="sm_90")
    given = replace(H200, sm=sm(4, 4), l2=replace(H200.l2, drift_steps=1e16))
    of_clusters = replace(launch((8, 1, 1)), cluster=(2, 1, 1))
    return dict(serve(code, of_clusters, trace, given, 65536, 1).counters)


def test_clusters_share_with_those_of_their_gpc() -> None:
    """Clusters go to the GPCs in turn, so that each GPC has those that load one line: its four requests become one."""
    assert clustered(multicast=False)["lts__t_sectors_srcunit_tex_op_read.sum"] == pytest.approx(8 * 4 / 4)


def test_multicast_requests_merge_with_none() -> None:
    counters = clustered(multicast=True)
    assert counters["lts__t_sectors_srcunit_tex_op_read.sum"] == pytest.approx(8 * 4)
    assert counters["l1tex__m_xbar2l1tex_read_sectors.sum"] == pytest.approx(2 * 8 * 4)


def test_without_merging_nothing_merges() -> None:
    assert share((4, 2), (4, 4), requests=1) == [0, 0, 0]


def test_counters() -> None:
    """Eight SMs of two GPCs read line 0, each writes a line: L2 serves two reads of four sectors, DRAM one."""

    def line(number: int) -> Lanes:
        return [128 * number + 4 * lane for lane in range(32)]

    blocks: dict[int, list[Accesses]] = {b: [[(LOAD, line(0)), (STORE, line(8 + b))]] for b in range(8)}
    gpu = replace(H200, sm=sm(4, 4))
    for merged, reads in ((4, 8), (1, 32)):
        given = replace(gpu, l2=replace(gpu.l2, merged_requests=merged, drift_steps=1e16))  # in step
        code = program("LDG.E", "STG.E")
        counters = serve(code, launch((8, 1, 1)), warp_trace(2, blocks), given, 65536, 1).counters
        assert counters["l1tex__m_xbar2l1tex_read_sectors.sum"] == 32
        assert counters["lts__t_sectors_srcunit_tex_op_read.sum"] == pytest.approx(reads)
        assert counters["lts__t_sectors_srcunit_tex_lookup_miss.sum"] == 4 == counters["dram__sectors_read.sum"]
        assert counters["lts__t_sectors_srcunit_tex_lookup_hit.sum"] == pytest.approx(reads - 4 + 32)
        assert counters["lts__t_requests_srcunit_tex.sum"] == pytest.approx(reads / 4 + 8)


def test_steps_are_those_of_all_blocks_that_come_to_a_place() -> None:
    """Sixteen blocks on eight SMs, of one warp that loads three lines: six steps. All load the same lines, so that
    four SMs of a GPC could ask once; half of what could merge does.
    """
    loads: list[Accesses] = [[(LOAD, [128 * number + 4 * lane for lane in range(32)]) for number in range(3)]]
    given = replace(H200, sm=sm(4, 4), l2=replace(H200.l2, drift_steps=6.0))
    code = program("LDG.E", "STG.E")
    counters = serve(code, launch((16, 1, 1)), warp_trace(2, dict.fromkeys(range(16), loads)), given, 65536, 1).counters
    asked = counters["l1tex__m_xbar2l1tex_read_sectors.sum"]
    assert counters["lts__t_sectors_srcunit_tex_op_read.sum"] == pytest.approx(asked * (1 - 0.75 / 2))


@pytest.mark.parametrize(("bulk", "rounds"), [(True, 2), (False, 4)])
def test_results_are_those_of_the_rarest_store(bulk: bool, rounds: int) -> None:
    """Eight SMs of two GPCs load the same line by TMA, then store two lines, and that once more: by a bulk copy, whose
    two records are one execution, or line by line, between loads. Of later rounds a half of what could merges does."""
    line = [4 * lane for lane in range(32)]
    stored = [(STORE, line), (STORE, line)] if bulk else [(STORE, line), (LOAD, line), (STORE, line)]
    accesses: list[Accesses] = [[(LOAD, line), *stored, (LOAD, line), *stored]]
    given = replace(H200, sm=sm(4, 4), tma=replace(H200.tma, merged_later=0.5))
    code = program("UTMALDG.2D", "UTMASTG.2D" if bulk else "STG.E")
    counters = serve(
        code, launch((8, 1, 1)), warp_trace(2, dict.fromkeys(range(8), accesses)), given, 65536, 1
    ).counters
    asked = counters["l1tex__m_xbar2l1tex_read_sectors.sum"]
    kept = (1 + (rounds - 1) * 0.5) / rounds
    assert counters["lts__t_sectors_srcunit_tex_op_read.sum"] == pytest.approx(asked * (1 - 0.75 * kept))


@pytest.mark.parametrize(("resident", "kept"), [(1, 1.0), (2, 0.5**0.5)])
def test_tiles_of_blocks_that_compete_merge_less_in_the_counters_and_not_in_time(resident: int, kept: float) -> None:
    """Two blocks of each of eight SMs of two GPCs, one after the other or at once, load the same line by TMA. In time,
    the SM model says itself how far they are in step."""
    accesses: list[Accesses] = [[(LOAD, [4 * lane for lane in range(32)])]]
    blocks = dict.fromkeys(range(16), accesses)
    given = replace(H200, sm=sm(4, 4))
    traffic = serve(program("UTMALDG.2D"), launch((16, 1, 1)), warp_trace(1, blocks), given, 65536, resident)
    asked = traffic.counters["l1tex__m_xbar2l1tex_read_sectors.sum"]
    assert traffic.counters["lts__t_sectors_srcunit_tex_op_read.sum"] == pytest.approx(asked * (1 - 0.75 * kept))
    assert traffic.cost.merged_share == pytest.approx(0.75)
