"""Bursts of loads, and matrix loads behind loads that miss: measured on an H200 and an H100, replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clock_reads import clocks
from sm_builder import ins
from trace_builder import Lanes, launch, warp_trace
from trace_builder import program as traced

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.serve import serve
from gemmsim.sm.streams import RecordCycles

H200 = load_gpu("h200")
RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_load_bursts.json").read_text(encoding="utf-8"))
BURSTS = [run for run in RECORD["bursts"] if run[2] > 1]
BEHIND_LOADS = [run for run in RECORD["behind_loads"] if run[3] > 1]
WIDTHS = {16: "LDG.E.128", 8: "LDG.E.64", 4: "LDG.E"}


@pytest.mark.parametrize("run", BURSTS, ids=lambda run: f"{run[0]}-{run[1]}-{run[2]}")
def test_warps_that_wait_for_room_in_the_queue_take_turns(run: list[Any]) -> None:
    """Did one warp go on until it is through, as where nothing holds it, the ninth clock of eight warps with loads of
    four wavefronts would be read in cycle 172 and not in cycle 62."""
    mnemonic, wavefronts, warps, measured, _ = run
    at = clocks([(ins(mnemonic, 2, write=0), RecordCycles(wavefronts, 0, 0, 0), 2)] * 24, warps)
    there, here = (
        np.array(measured[1:]) - measured[1],
        at[1:] - at[1],
    )  # the first clock has waited for an address there
    assert np.abs(here - there).max() < 0.12 * there[-1]


@pytest.mark.parametrize("run", BEHIND_LOADS, ids=lambda run: f"{run[0]}-{run[1]}")
def test_matrix_loads_go_on_while_what_loads_have_missed_comes(run: list[Any]) -> None:
    """Between two loads there are 15 cycles of other instructions, as where they were measured. If loads took the data
    stage with their request, and what is behind them waited for their tags, they would be 0.2 to 1.8 off."""
    wavefronts, lines, sectors, warps, _, measured, _ = run
    cost = RecordCycles(wavefronts, lines, sectors, 0)
    missing = [(ins("LDG.E.128", 2, write=1), cost, stall) for stall in (15, 15, 15, 15, 15, 2)]
    matrix = (ins("LDSM.16.M88.4", 2, write=0), RecordCycles(4, 0, 0, 0), 2)
    at = clocks([*missing, *[matrix] * 16], warps)[6:]
    assert np.abs(at / measured - 1).mean() < (0.25 if [wavefronts, lines] == [8, 8] else 0.4)


@pytest.mark.parametrize("run", RECORD["loads_beside"], ids=str)
def test_beside_shared_loads_a_global_one_takes_its_wavefronts(run: list[Any]) -> None:
    """Whether it hits or not: 32 cycles are those of 8 LDS.128."""
    width, lanes, stride, apart, misses, measured = run
    rows = 32 // lanes
    places = [(lane % rows, lane // rows) if apart else (lane // lanes, lane % lanes) for lane in range(32)]
    offsets: Lanes = [row * stride + column * width for row, column in places]
    accesses = [(1, offsets)] if misses else [(1, offsets), (1, offsets)]
    trace = warp_trace(2, {0: [accesses]})
    cost = serve(traced("LDG.E", WIDTHS[width]), launch(), trace, H200, 65536, 1).cost
    assert measured - 32 == pytest.approx(cost.wavefronts[-1], abs=0.7)
