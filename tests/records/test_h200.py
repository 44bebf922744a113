"""Counters recorded on a real H200, replayed on the CPU from the cubins that were measured."""

from __future__ import annotations

from functools import cache
from statistics import mean

import pytest
from gemmsim_validate.compare.metrics import EXACT, NOISE
from gemmsim_validate.records import load_cases

from gemmsim.api import count, launch_counters
from gemmsim.provenance import Provenance

CASES = [case for case in load_cases() if case.counters and case.n <= 1024]


@cache
def predicted(case_number: int) -> dict[str, float]:
    case = CASES[case_number]
    request = case.request()
    counted = count(request)
    for name in EXACT:
        assert counted.traffic.provenance.get(name, Provenance.EXACT) is Provenance.EXACT
    return {**counted.traffic.counters, **launch_counters(counted.program, request.launch, counted.occupancy)}


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{CASES[i].name}-{CASES[i].n}")
def test_exact_counters_equal_the_hardware(number: int) -> None:
    """Equal within the noise of the hardware's counter."""
    ours, theirs = predicted(number), CASES[number].counters
    assert {name: ours[name] for name in EXACT} == pytest.approx({name: theirs[name] for name in EXACT}, rel=NOISE)


def test_modelled_counters_stay_as_good_as_they_are() -> None:
    """Gates against getting worse, a little above today's figures: means 3.6 % and 2.0 points, worst 25 %.

    The worst L1 cases are tiles of 8 (blocks placed otherwise than round robin share lines) and coalesced at n = 1000.
    """
    sectors, hit_rate, dram = [], [], []
    for number, case in enumerate(CASES):
        ours, theirs = predicted(number), case.counters
        name = "l1tex__m_xbar2l1tex_read_sectors.sum"
        sectors.append(abs(ours[name] / theirs[name] - 1))
        hit_rate.append(abs(ours["l1tex__t_sector_hit_rate.pct"] - theirs["l1tex__t_sector_hit_rate.pct"]))
        dram.append(abs(ours["dram__sectors_read.sum"] / theirs["dram__sectors_read.sum"] - 1))
    assert mean(sectors) < 0.045 and max(sectors) < 0.27
    assert mean(hit_rate) < 2.5
    assert max(dram) < 0.03


def test_the_figures_the_issue_names() -> None:
    """n = 1024: tiled 32 x 32, naive and coalesced, from counts worked out by hand.

    tiled: a warp and tile load 2 x 128 bytes (4 sectors each) and read 32 rows of B by LDS.32 (1 wavefront each) and
    its row of A by 8 LDS.128 of one address (2 wavefronts each); 1024 blocks x 32 warps x 32 tiles.
    """
    warp_tiles = 1024 * 32 * 32
    expected = {
        "plain_tiled32": {
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2 * warp_tiles,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 8 * warp_tiles,
            "smsp__inst_executed_op_shared_ld.sum": 40 * warp_tiles,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": (32 + 8 * 2) * warp_tiles,
            "smsp__inst_executed.sum": 123_764_736,
        },
        # Each product loads A down a column (32 sectors) and one broadcast element of B (1 sector) ...
        "plain_naive32": {
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2 * 1024**3 // 32,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 33 * 1024**3 // 32,
        },
        # ... or one element of A and 128 consecutive bytes of B.
        "plain_coal32": {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 5 * 1024**3 // 32},
    }
    for case in load_cases():
        if case.n == 1024 and case.name in expected:
            counters = count(case.request()).traffic.counters
            for name, value in expected[case.name].items():
                assert counters[name] == value, (case.name, name)
