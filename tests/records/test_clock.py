"""The SM clock by what a kernel executes, measured on an H200: matrix instructions but FP64's lower it."""

import json
from pathlib import Path
from statistics import median

import pytest
from sm_builder import EXIT, ins, program, time_of

from gemmsim.gpu.load import load_gpu

RUNS = json.loads(Path(__file__).with_name("h200_clock.json").read_text(encoding="utf-8"))["runs"]
H200 = load_gpu("h200")
LOWERED, FULL = ("HMMA", "IMMA"), ("DMMA", "FFMA", "LOP3")
LEAST_LOAD = 10  # percent; below, the clock of HMMA and IMMA falls to 1,632 MHz and more, which is not explained


def clocks(*opcodes: str) -> list[float]:
    """Median MHz of each run of these opcodes with at least LEAST_LOAD of the rate that the pipe allows."""
    return [mhz for name, _, load, mhz, _, _ in RUNS if name.startswith(opcodes) and load >= LEAST_LOAD]


def clock_of(mnemonic: str) -> float:
    return time_of(program(ins(mnemonic), EXIT), [[0, 1]], 1, 1, 1, gpu=H200).sm_clock_hz / 1e6


def test_the_model_runs_at_the_clocks_measured() -> None:
    assert (
        clock_of("HMMA.16816.F32") == clock_of("IMMA.16832.S8.S8") == pytest.approx(median(clocks(*LOWERED)), rel=0.002)
    )
    assert clock_of("DMMA.8x8x4") == clock_of("FFMA") == pytest.approx(median(clocks(*FULL)), rel=0.002)


def test_hmma_and_imma_run_at_one_clock_however_often_they_issue() -> None:
    found = clocks(*LOWERED)
    assert len(found) == 4 * 7
    assert found == pytest.approx([median(found)] * len(found), rel=0.005)


def test_dmma_and_arithmetic_run_at_the_full_clock() -> None:
    assert min(clocks(*FULL)) > 1.09 * max(clocks(*LOWERED))
