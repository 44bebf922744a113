"""Loops of straight-line code on an H200 (`tests/sources/code_loops.cu`): sets and ways of the instruction caches, what
is fetched ahead, and how far SMs are from the second level."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sm_builder import EXIT, GPU, ins, program, simulate

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.spec import Rates

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_code_loops.json").read_text(encoding="utf-8"))
H200 = load_gpu("h200")
SMS = 132
BEFORE = 53  # instructions before the loop
FIRST, LAST = 15, 1  # those beside the FFMA in the first chunk, its branch included, and behind the last chunk


def loop(lines: int, jumped: int, chunks: int) -> tuple[list[Any], list[int]]:
    """Return the code as nvcc lays it out, and the numbers of the instructions that an iteration executes."""
    code, executed = [ins("NOP", 1)] * BEFORE, []
    for chunk in range(chunks):
        more = (FIRST if chunk == 0 else 2) if jumped else 4
        here = [ins("FFMA", 1)] * (8 * lines + more - 1) + [ins("BRA" if jumped else "FFMA", 1)]
        executed += range(len(code), len(code) + len(here))
        code += [*here, *[ins("FFMA", 1)] * (8 * jumped)]
    executed += range(len(code), len(code) + LAST)
    return [*code, *[ins("BRA", 1)] * LAST, EXIT], executed


def predicted(row: list[Any], near_line_cycles: float) -> float:
    """Return the cycles an FFMA, for an SM to which a line of the second level takes so long."""
    lines, jumped, chunks, warps = row[:4]
    code, executed = loop(lines, jumped, chunks)
    gpu = replace(GPU, fetch=replace(H200.fetch, near_line_cycles=near_line_cycles))
    program_ = program(*code)
    cycles = [simulate(program_, warps=warps, gpu=gpu, pcs=executed * n + [len(code) - 1]).cycles for n in (3, 5)]
    return (cycles[1] - cycles[0]) / 2 / (8 * lines * chunks)


def rows(jumps: bool, warps: int) -> list[list[Any]]:
    return [row for row in RECORD["rows"] if row[4] == SMS and row[3] == warps and (row[1] > 0) == jumps]


@pytest.mark.parametrize("row", rows(jumps=False, warps=1), ids=str)
def test_loops_on_the_nearest_sms(row: list[Any]) -> None:
    """Between 256 and 320 lines as many are fetched as lie in sets with one line too many; from 1024 on so from L2."""
    whole = row[0] < 248 or 320 <= row[0] < 1024 or row[0] >= 1152  # no set, or every one, has a line too many
    assert predicted(row, H200.fetch.near_line_cycles) == pytest.approx(row[5], rel=0.05 if whole else 0.08)


@pytest.mark.parametrize("row", [row for row in rows(jumps=False, warps=8) if row[0] >= 320][::2], ids=str)
def test_loops_of_two_warps_a_sub_partition(row: list[Any]) -> None:
    assert predicted(row, H200.fetch.near_line_cycles) == pytest.approx(row[5], rel=0.09)


@pytest.mark.parametrize("row", [row for row in rows(jumps=False, warps=4) if 256 <= row[0] < 1024], ids=str)
def test_loops_on_the_farthest_sms(row: list[Any]) -> None:
    most = H200.fetch.near_line_cycles + H200.fetch.near_line_spread_cycles
    assert predicted(row, most) == pytest.approx(row[7], rel=0.08)


@pytest.mark.parametrize("row", [row for row in rows(jumps=True, warps=1) if row[0] * row[2] >= 288], ids=str)
def test_lines_before_a_jump_are_fetched_in_vain(row: list[Any]) -> None:
    assert predicted(row, H200.fetch.near_line_cycles) == pytest.approx(row[5], rel=0.06)


@pytest.mark.parametrize("row", [row for row in rows(jumps=True, warps=1) if row[0] * row[2] < 288][::2], ids=str)
def test_what_is_fetched_in_vain_takes_room(row: list[Any]) -> None:
    """So loops with jumps wait although their own lines would fit; here up to 28 % too little of it (deviation 12)."""
    cycles = predicted(row, H200.fetch.near_line_cycles)
    assert 0.7 < cycles / row[5] < 1.05
    without = predicted([row[0] * row[2], 0, 1, *row[3:]], H200.fetch.near_line_cycles)
    assert cycles > without


def test_both_sms_of_a_tpc_are_as_near() -> None:
    """So the second level is not theirs: the places of a GPC differ. The launch ends with the farthest."""
    cycles = RECORD["of_sms"]
    assert all(a == pytest.approx(b, rel=0.005) for a, b in zip(cycles[::2], cycles[1::2], strict=True))
    assert max(cycles) / min(cycles) == pytest.approx(2.80 / 2.08, rel=0.01)
    rate = Rates.share(H200, SMS, H200.clock.sm_load_hz).near_line_cycles
    assert rate / 8 == pytest.approx(max(cycles), rel=0.01)


def test_two_warps_of_a_sub_partition_are_fetched_for_a_little_faster() -> None:
    """On the H200; here they take as long as one (deviation 12)."""
    for one, two in zip(rows(jumps=False, warps=4), rows(jumps=False, warps=8), strict=True):
        if 320 <= one[0] <= 960:
            assert 0.90 < two[7] / one[7] < 0.93
            assert predicted(two, 22.4) == pytest.approx(predicted(one, 22.4), rel=0.01)
