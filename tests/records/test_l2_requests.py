"""Loads of one to four sectors of each line from L2, on an H200 (h200_l2_requests.json), replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from timed import timing

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_l2_requests.json").read_text(encoding="utf-8"))
SOURCE = (Path(__file__).parents[1] / "sources" / "l2_requests.cu").read_text(encoding="utf-8")
MEASURED = {tuple(how): us for *how, us, _, _ in RECORD["rows"]}
LAUNCH_US = 1.4
TIMED = [
    (1, 4, 264, 32, 20),  # whole lines
    (2, 2, 264, 32, 8),  # half lines come as fast
    (4, 1, 132, 32, 8),  # 49 % too fast where a sector took a quarter of a line's time
    (32, 1, 132, 8, 4),
    (8, 1, 16, 32, 48),  # a line a cycle of each SM
]
INSTANCES = tuple(f"requests<{lines},{sectors}>" for lines, sectors, *_ in TIMED)


@pytest.mark.parametrize(("lines", "sectors", "blocks", "warps", "loads"), TIMED)
def test_a_line_takes_l2_some_time_however_few_sectors_are_asked_for(
    lines: int, sectors: int, blocks: int, warps: int, loads: int
) -> None:
    found = timing(
        SOURCE,
        file="l2_requests.cu",
        instances=INSTANCES,
        entry=f"requests<{lines},{sectors}>",
        grid=blocks,
        block=32 * warps,
        args=("f32[33554432]=0", "f32[1]=0", f"i32={loads}", "i32=8", "i32=0"),
        gpu="h200",
        caches="warm",
    )
    assert found.cycles / 1.98e3 == pytest.approx(
        MEASURED[lines, sectors, blocks, warps, loads, 8] - LAUNCH_US, rel=0.07
    )


def test_how_many_lines_l2_gets_through() -> None:
    """Of single sectors and of half lines as many a nanosecond, where all SMs ask for as many as they can: half lines
    are 7.8 TB/s, whole ones 8.5."""

    def most(sectors: int) -> float:
        return max(
            requests / (us - LAUNCH_US) / 1e3
            for _, asked, blocks, warps, _, _, us, requests, _ in RECORD["rows"]
            if (asked, warps) == (sectors, 32) and blocks >= 132
        )

    assert most(1) == pytest.approx(137, rel=0.02)
    assert most(2) == pytest.approx(122, rel=0.02)
    assert most(4) == pytest.approx(66, rel=0.02)
