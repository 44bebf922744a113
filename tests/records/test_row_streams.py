"""Loads of warps that also store, on an H200 (h200_row_streams.json), replayed: reads of DRAM wait for its writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from timed import timing

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_row_streams.json").read_text(encoding="utf-8"))
SOURCE = (Path(__file__).parents[1] / "sources" / "row_streams.cu").read_text(encoding="utf-8")
ROW = 16384  # floats; rows of their own
WARPS = (1, 16, 48)  # of an SM; those between take as long to predict, and come out as near
LAUNCH_US = 1.4


def error(width: int, warps: int, steps: int, us: float) -> float:
    """Of the time of so many warps an SM, each of which loads and stores `width` floats a lane in each step."""
    floats = 132 * warps * ROW
    found = timing(
        SOURCE,
        file="row_streams.cu",
        instances=("row_streams<1,1,1>", "row_streams<4,1,1>"),
        entry=f"row_streams<{width},1,1>",
        grid=132 * max(1, warps // 8),
        block=32 * min(warps, 8),
        args=(f"f32[{floats}]=0", f"f32[{floats}]=0", f"i32={ROW}", f"i32={steps}", "i32=1", "f32[1]=0"),
        gpu="h200",
        caches="cold",
    )
    return found.cycles / 1.98e3 / (us - LAUNCH_US) - 1


def test_loads_wait_for_writes() -> None:
    """0.1 to 3.8 TB/s read and written. Before reads waited for writes, these came out up to 35 % too fast."""
    errors = [
        error(width, warps, steps, us)
        for width, ahead, stores, row, warps, steps, together, us, *_ in RECORD["rows"]
        if (ahead, stores, row, together) == (1, 1, ROW, 1) and warps in WARPS
    ]
    assert len(errors) == 6
    assert sum(map(abs, errors)) / len(errors) < 0.035  # 2.3 % of all twelve
    assert max(map(abs, errors)) < 0.08


def test_it_does_not_matter_how_far_apart_the_rows_are() -> None:
    """Neither that each warp goes through a row of its own, nor that all go through one together, side by side."""
    alike: dict[tuple[int, ...], list[float]] = {}
    for *how, row, warps, steps, together, us, _, _ in RECORD["rows"]:
        if row == 64 * 32 * how[0] * together or (row, together) == (ROW, 1):
            alike.setdefault((*how, warps, steps), []).append(us)
    several = [times for times in alike.values() if len(times) > 1]
    assert len(several) == 15
    for times in several:
        assert max(times) / min(times) < 1.17
