"""Half-precision arithmetic on CUDA cores of an H200 (h200_half.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from timed import timing

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_half.json").read_text(encoding="utf-8"))
SOURCE = (Path(__file__).parents[1] / "sources" / "half_loops.cu").read_text(encoding="utf-8")
PASSES, INSTRUCTIONS = 8, 256
HFMA2, WITH_FFMA, WITH_IMAD = 6, 7, 10
LOOPS = [row for row in RECORD["loops"] if row[2] == 32 and row[1] in (1, 16)]
INSTANCES = tuple(f"loop<{op},{chains}>" for op, chains, *_ in LOOPS)


def cycles(op: int, chains: int, warps: int) -> float:
    """Cycles an instruction of a warp of each sub-partition; what is not the loop is left out."""
    launch: dict[str, Any] = {"entry": f"loop<{op},{chains}>", "grid": (1, 1, 1), "block": (32 * warps, 1, 1)}
    ran = []
    for n in (0, PASSES):
        args = ("u8[4096]=0", "u8[64]=0", f"i32={n}", "u32=1", "u32=2")
        ran.append(timing(SOURCE, "h200", "warm", "half_loops.cu", INSTANCES, **launch, args=args).cycles)
    return (ran[1] - ran[0]) / PASSES / INSTRUCTIONS / -(-warps // 4)


@pytest.mark.parametrize("row", LOOPS, ids=str)
def test_loops(row: list[Any]) -> None:
    op, chains, warps, measured = row
    assert cycles(op, chains, warps) == pytest.approx(measured, rel=0.07)


def test_hfma2_takes_both_halves_of_the_fma_pipe() -> None:
    """By hand: every second cycle; with an IMAD, which needs the heavy half, four for the two of them."""
    assert cycles(HFMA2, 16, 32) == pytest.approx(2, rel=0.03)
    assert cycles(WITH_IMAD, 16, 32) == pytest.approx((2 + 2) / 2, rel=0.03)
    assert 1.5 < cycles(WITH_FFMA, 16, 32) < 2
