"""How often DMMA issues and when its result is there, as an H200 took it."""

import json
from pathlib import Path

import pytest

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.pipes import matrix_latency_cycles, pipe_slots

H200 = load_gpu("h200")
RUNS = json.loads(Path(__file__).with_name("h200_dmma.json").read_text(encoding="utf-8"))["runs"]


@pytest.mark.parametrize("shape", ["8x8x4", "16x8x4", "16x8x8", "16x8x16"])
def test_dmma_by_its_shape(shape: str) -> None:
    """A dependent chain of one warp shows the latency, four chains in each sub-partition the interval."""
    cycles = {(chains, warps): step for name, chains, warps, step in RUNS if name == f"DMMA.{shape}"}
    assert matrix_latency_cycles("DMMA", [shape], H200) == pytest.approx(cycles[1, 1], abs=0.1)
    interval = pipe_slots("DMMA", [shape], H200) * H200.pipes["tensor"].issue_interval_cycles
    assert interval == pytest.approx(cycles[4, 4], abs=0.15)
    assert interval == pytest.approx(cycles[4, 8] / 2, rel=0.01)
