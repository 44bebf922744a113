"""Counts worked out by hand for three launches that a real H200 counted (validate/records/h200)."""

from __future__ import annotations

from gemmsim_validate.records.case import load_cases
from gemmsim_validate.records.replay import launch_of

from gemmsim.api import count


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
            counters = count(launch_of(case)).traffic.counters
            for name, value in expected[case.name].items():
                assert counters[name] == value, (case.name, name)


def test_passes_of_the_tag_stage() -> None:
    """Rows of 4000 bytes put the lines of a column into the banks of the tags unevenly: 11.2 passes for 32 lines on an
    H200, and 8 where rows are 4096 bytes. Where its arrays lay is not on record, so a few percent are left open."""
    metric = "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum"
    found = {}
    for case in load_cases():
        cube = case.m == case.n == case.k and case.n in (1000, 1024)
        if cube and case.name in ("naive", "coalesced", "blocktile_1d"):
            counted = count(launch_of(case)).traffic.counters[metric]
            found[case.name, case.n] = counted / case.counters[metric]
    assert len(found) == 6
    for (name, n), ratio in found.items():
        assert abs(ratio - 1) < (0.001 if n == 1024 else 0.04), (name, n, ratio)
