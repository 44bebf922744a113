"""How far SMs of an H200's GPC are from each other while their blocks read tiles step by step. What is on record here
is not in the model yet: `memory.caches.merging` takes ordinary loads to lose step by chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROWS: list[Any] = json.loads(Path(__file__).with_name("h200_sm_distances.json").read_text(encoding="utf-8"))["rows"]
STEPS = (1, 4, 16, 48, 95)
LONG = 24  # times 64 FFMA, for which the next tile has come


def of(lines: int, ahead: bool, cold: bool) -> list[list[list[int]]]:
    """The median distances at `STEPS` of pairs of SMs that share A, B, or neither, of each launch."""
    return [
        [[median for median, _ in pairs] for pairs in row[2:]]
        for row in ROWS
        if (row[0][0], row[0][1], row[0][4]) == (lines, ahead, cold)
    ]


@pytest.mark.parametrize("lines", [1, 4])
def test_sms_that_wait_for_l2_drift_apart_at_a_constant_rate(lines: int) -> None:
    """Each has its own distance to L2: 5 to 20 cycles a step in the median, whether they share tiles or not, compute
    64 * 4 or 64 * 24 FFMA, have four warps or eight. By chance, the last distance would be 1.4 times the one before."""
    for shares_a, _, shares_neither in of(lines, ahead=False, cold=False):
        for pairs in (shares_a, shares_neither):
            assert 5 < (pairs[-1] - pairs[-2]) / (STEPS[-1] - STEPS[-2]) < 21
            assert 1.6 < pairs[-1] / pairs[-2] < 2.3


def test_sms_whose_loads_are_hidden_stay_as_far_apart_as_they_were() -> None:
    launches = [row for row in ROWS if row[0][1] and row[0][3] == LONG and row[0][0] <= 4]
    assert len(launches) == 8
    for _, _, *pairs in launches:
        for medians in pairs:
            assert abs(medians[-2][0] - medians[0][0]) <= 17


@pytest.mark.parametrize("lines", [1, 4])
def test_sms_that_wait_for_the_same_lines_of_dram_come_together(lines: int) -> None:
    """Those that share A, which DRAM brings for them alone, are within 8 cycles of each other in the end; those that
    share nothing are 400 and more apart."""
    for shares_a, _, shares_neither in of(lines, ahead=False, cold=True):
        assert shares_a[-1] <= 8
        assert shares_neither[-1] > 400
