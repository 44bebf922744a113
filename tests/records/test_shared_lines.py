"""Lines that one SM or many of an H100 ask DRAM for: `tests/sources/shared_lines.cu`, predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from timed import timing

HERE = Path(__file__).parent
RECORD: dict[str, Any] = json.loads((HERE / "h100_shared_lines.json").read_text(encoding="utf-8"))
SOURCE = (HERE.parent / "sources" / "shared_lines.cu").read_text(encoding="utf-8")


def measured(stride: int, sms: int) -> float:
    """The mean over SMs, and over caches emptied by reads and by writes."""
    return float(np.mean([row[5] for row in RECORD["rows"] if (row[0], row[4]) == (stride, sms) and row[1] >= 0]))


def predicted(stride: int, sms: int) -> float:
    """The cycles of a load."""

    def cycles(loads: int) -> float:
        arrays = (f"u8[{stride * loads}]=0", f"i64={stride}", f"i32={loads}", f"u32[{sms}]=0")
        found = timing(SOURCE, entry="shared_lines", grid=sms, block=1, args=arrays, gpu="h100")
        return found.cycles

    return (cycles(192) - cycles(64)) / 128


@pytest.mark.parametrize("stride", [1024, 4096])
def test_lines_that_many_sms_want_come_sooner(stride: int) -> None:
    alone, shared = predicted(stride, 1), predicted(stride, 132)
    assert alone == pytest.approx(measured(stride, 1), rel=0.065)
    assert shared == pytest.approx(measured(stride, 132), rel=0.12)
    assert alone - shared == pytest.approx(measured(stride, 1) - measured(stride, 132), abs=30)


def test_a_line_is_near_to_some_sms_and_far_from_the_others() -> None:
    """The lines that are fast for SM 0 are slow for SM 40, and take some 200 cycles more there: each half of L2 has a
    part of DRAM."""
    first, other = (np.array(RECORD["lines"]["sms"][sm]) for sm in ("0", "40"))
    near, far = (first < 650) & (other > 650), (first > 650) & (other < 650)
    assert near.sum() + far.sum() > 0.7 * len(first)
    assert 130 < np.median(other[near]) - np.median(first[near]) < 230
    assert 130 < np.median(first[far]) - np.median(other[far]) < 230
