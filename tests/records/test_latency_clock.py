"""Latencies of L2 and DRAM at two SM clocks, measured on an H200, beside those of the preset."""

import json
from pathlib import Path
from statistics import mean

import pytest

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.spec import Rates

MEASURED = json.loads(Path(__file__).with_name("h200_latency_clock.json").read_text(encoding="utf-8"))["rows"]
H200 = load_gpu("h200")
DRAM_BYTES = 1 << 30


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row['bytes'] >> 20} MiB, {row['work']}, {row['warps']}")
def test_latency_follows_the_clock(row: dict) -> None:
    """Within 2 %. The clock is 1980 MHz, or 1815 MHz while other SMs of the GPC multiply matrices, however seldom."""
    hertz = row["cycles"] / row["ns"] * 1e9
    assert hertz == pytest.approx(1.815e9 if "HMMA" in row["work"] else 1.98e9, rel=0.002)
    rates = Rates.share(H200, 1, hertz)
    expected = rates.dram_latency_cycles if row["bytes"] == DRAM_BYTES else rates.l2_latency_cycles
    assert row["cycles"] / row["hops"] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("memory", ["l2", "dram"])
def test_fixed_part_of_a_latency(memory: str) -> None:
    """It is what is lost in cycles, over what is lost in MHz: 12 and 41 cycles over 165 MHz."""
    rows = [row for row in MEASURED if (row["bytes"] == DRAM_BYTES) == (memory == "dram")]
    high, low = ([row for row in rows if ("HMMA" in row["work"]) == lowered] for lowered in (False, True))
    lost = [
        mean(row["cycles"] / row[per] for row in high) - mean(row["cycles"] / row[per] for row in low)
        for per in ("hops", "ns")
    ]
    assert lost[0] / lost[1] * 1e-3 == pytest.approx(getattr(H200, memory).fixed_latency_us, rel=0.03)
