"""The SM clock by what a kernel executes, measured on an H200: matrix instructions but FP64's lower it."""

import json
from pathlib import Path
from statistics import median

import pytest
from gemmsim_validate.records.case import load_cases
from gemmsim_validate.records.files import FOLDER
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


def clock_of(mnemonic: str, sms: int = H200.sm.count) -> float:
    return time_of(program(ins(mnemonic), EXIT), [[0, 1]], 1, sms, 1, gpu=H200).sm_clock_hz / 1e6


def test_the_model_runs_at_the_clocks_measured() -> None:
    beside_loads = median(clocks_beside_loads(*LOWERED))
    assert clock_of("HMMA.16816.F32") == clock_of("IMMA.16832.S8.S8") == pytest.approx(beside_loads, rel=0.002)
    assert clock_of("DMMA.8x8x4") == clock_of("FFMA") == pytest.approx(median(clocks(*FULL)), rel=0.002)


def test_a_few_sms_with_matrix_instructions_lower_the_clock_less() -> None:
    """Nsight Compute's clock of the ladder's rungs with HMMA and wgmma on 2, 4 and 32 SMs."""
    cases = [case for folder in ("h200", "h200_wgmma") for case in load_cases(FOLDER / folder) if case.counters]
    rungs = [case for case in cases if case.name.startswith(("tensorcore", "wgmma", "tf32")) and case.grid[2] == 1]
    of_sms: dict[int, list[float]] = {}
    for case in rungs:
        blocks = case.grid[0] * case.grid[1]
        if blocks <= 32 and case.n in (256, 1024):
            of_sms.setdefault(blocks, []).append(case.counters["gpc__cycles_elapsed.avg.per_second"] / 1e6)
    assert set(of_sms) == {2, 4, 32}
    for sms, measured in of_sms.items():
        assert clock_of("HMMA.16816.F32", sms) == pytest.approx(median(measured), rel=0.02)
        assert len(measured) >= 3
        assert measured == pytest.approx([median(measured)] * len(measured), rel=0.05)


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
