"""The SM clock by what a kernel executes, measured on an H200: matrix instructions but FP64's lower it."""

import json
from pathlib import Path
from statistics import median

import pytest
from sm_builder import EXIT, ins, program, time_of

from gemmsim.gpu.load import load_gpu

MEASURED = json.loads(Path(__file__).with_name("h200_clock.json").read_text(encoding="utf-8"))
RUNS = MEASURED["runs"]
H200 = load_gpu("h200")
LOWERED, FULL = ("HMMA", "IMMA"), ("DMMA", "FFMA", "LOP3")
LEAST_LOAD = 10  # percent; below, one H200's clock fell to 1,632 MHz and more, which another's did not


def clocks(*opcodes: str) -> list[float]:
    """Median MHz of each run of these opcodes with at least LEAST_LOAD of the rate that the pipe allows."""
    return [mhz for name, _, load, mhz, _, _ in RUNS if name.startswith(opcodes) and load >= LEAST_LOAD]


def clocks_beside_loads(*opcodes: str) -> list[float]:
    """Median MHz of each run that also loads from shared memory or L2, as a GEMM does."""
    return [run[5] for run in MEASURED["loads_runs"] if run[0].startswith(opcodes)]


def clock_of(mnemonic: str) -> float:
    """The clock, in MHz, at which more of these instructions run: more cycles over more time."""
    code = program(*[ins(mnemonic)] * 300, EXIT)
    short, long = (time_of(code, [[*range(count), 300]], 1, 1, 1, gpu=H200) for count in (100, 300))
    return (long.cycles - short.cycles) / (long.duration_us - short.duration_us)


def test_the_model_runs_at_the_clocks_measured() -> None:
    beside_loads = median(clocks_beside_loads(*LOWERED))
    assert [clock_of("HMMA.16816.F32"), clock_of("IMMA.16832.S8.S8")] == pytest.approx([beside_loads] * 2, rel=0.002)
    assert [clock_of("DMMA.8x8x4"), clock_of("FFMA")] == pytest.approx([median(clocks(*FULL))] * 2, rel=0.002)


def test_hmma_and_imma_run_at_one_clock_however_often_they_issue() -> None:
    found = clocks(*LOWERED)
    assert len(found) == 4 * 7
    assert found == pytest.approx([median(found)] * len(found), rel=0.005)


def test_loads_beside_them_change_little() -> None:
    found = clocks_beside_loads(*LOWERED)
    assert len(found) == 104
    assert min(found) > 0.965 * median(found), "least in launches of 0.2 ms that do nothing else"
    assert min(clocks_beside_loads("FFMA")) > 1.09 * max(found)


def test_dmma_and_arithmetic_run_at_the_full_clock() -> None:
    assert min(clocks(*FULL)) > 1.09 * max(clocks(*LOWERED))
