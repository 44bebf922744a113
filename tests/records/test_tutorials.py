"""Kernels as tutorials about matrix products and language models have them, on an H200 (h200_tutorials.json).

All 159 launches were predicted before anyone looked at a time. The half of them whose kernel's name, without what it is
a template of, has an even CRC-32 may be looked into; of the others only the mean is.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from timed import timing

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_tutorials.json").read_text(encoding="utf-8"))
SOURCE = (Path(__file__).parents[1] / "sources" / "tutorials.cu").read_text(encoding="utf-8")
ROW_US = 0.6  # of a launch in a row, from begin to end, beside the cycles of its blocks


@pytest.mark.parametrize(
    ("number", "kernel", "pct"),
    [
        (51, "hgemm_8x8_half8", 4),  # 16 % too fast before HFMA2 took both halves of the FMA pipe
        pytest.param(52, "hgemm_8x8_half8", 4, marks=pytest.mark.slow),
    ],
)
def test_launches_in_a_row(number: int, kernel: str, pct: float) -> None:
    name, grid, block, shared, arguments, measured_us, *_ = RECORD["launches"][number - 1]
    assert name == kernel and in_study(name)
    launch = {"entry": name, "grid": tuple(grid), "block": tuple(block), "shared": shared, "args": tuple(arguments)}
    found = timing(SOURCE, "h200", "warm", file="" if "<" in name else "tutorials.cu", **launch)
    assert found.cycles * 1e6 / found.sm_clock_hz + ROW_US == pytest.approx(measured_us, rel=pct / 100)


def in_study(kernel: str) -> bool:
    return zlib.crc32(kernel.split("<", maxsplit=1)[0].encode()) % 2 == 0


def test_the_halves() -> None:
    study = [in_study(name) for name, *_ in RECORD["launches"]]
    assert (len(study), sum(study)) == (159, 86)
