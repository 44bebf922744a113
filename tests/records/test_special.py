"""Special functions, divisions and shuffles on an H200 (h200_special.json), replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from timed import timing

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_special.json").read_text(encoding="utf-8"))
SOURCE = (Path(__file__).parents[1] / "sources" / "special.cu").read_text(encoding="utf-8")
CHAINS = list(dict.fromkeys(row[0] for row in RECORD["rows"]))
MEASURED = {(name, warps, chains): cycles for name, warps, chains, cycles in RECORD["rows"]}


def cycles_a_link(name: str, warps: int, chains: int) -> float:
    def cycles(count: int) -> float:
        found = timing(
            SOURCE,
            file="special.cu",
            instances=INSTANCES,
            entry=f"special<{CHAINS.index(name)},{chains}>",
            grid=132,
            block=32 * warps,
            args=("i64[132]=0", "f32[135168]=0", f"i32={count}", "i32=1"),
            gpu="h200",
            caches="warm",
        )
        return found.cycles

    return (cycles(768) - cycles(256)) / 512 / chains


TIMED = [
    ("SHFL.BFLY", 1, 1, 4),  # 13 % too fast where shuffles took as long as shared loads
    ("SHFL.BFLY+FADD", 8, 4, 8),
    ("MUFU.EX2", 1, 1, 4),
    ("MUFU.RCP+LDS", 8, 4, 4),  # 21 and 46 % too slow where the youngest warp went first
    ("MUFU.RCP+LDS", 32, 1, 8),
    ("EX2+4 FFMA", 32, 1, 8),
    ("expf", 32, 1, 8),
    ("divide", 32, 4, 8),  # 45 % too fast with FCHK on the ALU
    ("divide", 1, 1, 8),
    ("REDUX", 32, 4, 4),  # 70 % too fast on the uniform datapath
]
INSTANCES = tuple({f"special<{CHAINS.index(name)},{chains}>" for name, _, chains, _ in TIMED})


@pytest.mark.parametrize(("name", "warps", "chains", "pct"), TIMED)
def test_chains(name: str, warps: int, chains: int, pct: float) -> None:
    assert cycles_a_link(name, warps, chains) == pytest.approx(MEASURED[name, warps, chains], rel=pct / 100)
