"""What the clock of an H200 does while tensor cores work, read off its record: docs/model/power.md."""

import json
from pathlib import Path

import numpy as np
import pytest

MEASURED = json.loads(Path(__file__).with_name("h200_tensor_clock.json").read_text(encoding="utf-8"))
IDLE_MHZ, TENSOR_MHZ = 1980, 1800


def mhz(samples: list[list[int]], begin_ns: int, end_ns: int) -> float:
    """The mean clock between two times."""
    time, cycles = np.array(samples, float).T
    at = np.interp([begin_ns, end_ns], time, cycles)
    return float(at[1] - at[0]) / (end_ns - begin_ns) * 1000


def bursts(work: str, busy: int, bursts: int = 1, burst_ns: int = 6000) -> dict:
    (found,) = (
        run
        for run in MEASURED["bursts"]
        if (run["work"], run["busy_blocks"], run["bursts"], run["burst_ns"]) == (work, busy, bursts, burst_ns)
        and run["blocks"] in (busy, 132)
        and (busy != 1 or run["blocks"] == 132)
    )
    return found


@pytest.mark.parametrize("block", ["0", "1"])
def test_the_clock_of_a_gpc_falls_with_its_first_tensor_work(block: str) -> None:
    """Block 0 multiplies from 3 to 9 us, block 1 is on the same GPC: 1.5 to 1.7 GHz for a microsecond, then 1.8, and
    from a microsecond after the end on 1.98 GHz again.
    """
    samples = bursts("HMMA.16816 bf16", 1)["samples"][block]
    assert mhz(samples, 1000, 3000) == pytest.approx(IDLE_MHZ, rel=0.015)
    assert 1500 < mhz(samples, 3100, 3900) < 1700
    assert mhz(samples, 4500, 9000) == pytest.approx(TENSOR_MHZ, rel=0.025)
    assert mhz(samples, 9200, 9900) == pytest.approx(TENSOR_MHZ, rel=0.03)
    assert mhz(samples, 10500, 13500) == pytest.approx(IDLE_MHZ, rel=0.015)


@pytest.mark.parametrize("block", ["66", "131"])
def test_other_gpcs_keep_theirs(block: str) -> None:
    samples = bursts("HMMA.16816 bf16", 1)["samples"][block]
    assert mhz(samples, 3000, 10000) == pytest.approx(IDLE_MHZ, rel=0.01)


def test_work_without_tensor_cores_lowers_no_clock() -> None:
    assert mhz(bursts("FFMA", 132)["samples"]["0"], 3000, 9000) > 1940


def test_long_loops_run_at_1800_on_any_number_of_sms() -> None:
    """HMMA, IMMA and wgmma of bf16. DMMA and FFMA do not lower the clock."""
    for row in MEASURED["steady"]:
        high = row["work"] in ("dmma", "ffma")
        assert row["mhz"] == pytest.approx(IDLE_MHZ if high else TENSOR_MHZ, rel=0.008), row


def test_each_return_of_tensor_work_after_a_pause_costs_a_quarter_of_a_microsecond() -> None:
    """Bursts of some 170 cycles with pauses of 1 to 24 us, on one SM: the time beyond that at 1.98 GHz."""
    rows = [row for row in MEASURED["duty"] if row["blocks"] == 1 and 2000 < row["period_cycles"] < 50_000]
    assert len(rows) == 12
    for row in rows:
        lost_us = row["period_cycles"] * (1 / row["mhz"] - 1 / IDLE_MHZ)
        assert 0.24 < lost_us < 0.39, (row, lost_us)
