"""The clock of kernels whose tiles merge on their way from L2, as a byte takes less power where several SMs get it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from gemmsim_validate.records.case import Case, load_cases
from gemmsim_validate.records.files import FOLDER
from gemmsim_validate.records.replay import launch_of

from gemmsim import api

ROWS = json.loads(Path(__file__).with_name("h200_tile_clocks.json").read_text(encoding="utf-8"))["rows"]


@cache
def cases() -> dict[str, Case]:
    return {case.id: case for case in load_cases(FOLDER / "h200_tiles")}


def near_others(name: str) -> bool:
    """Whether rings of more and of fewer stages, or with wider tiles, are timed beside it."""
    return "stages=3" in name or "tile_n=64,stages=6" in name


@pytest.mark.parametrize(
    ("name", "mhz"),
    [pytest.param(name, mhz, marks=pytest.mark.slow if near_others(name) else ()) for name, mhz, *_ in ROWS],
)
def test_clock(name: str, mhz: float) -> None:
    """Within 6 %. Where a byte cost its whole way from L2 for each SM, five of eleven were 11 to 13 % too low."""
    launch = launch_of(cases()[name])
    assert api.time(api.count(launch), launch).sm_clock_hz / 1e6 == pytest.approx(mhz, rel=0.06)
