"""How many memory requests are under way before warps wait to issue: measured on an H200, replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clock_reads import clocks
from sm_builder import ins

from gemmsim.sm.streams import RecordCycles

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_queues.json").read_text(encoding="utf-8"))
LOADS = [row for row in RECORD["loads"] if row[1] == 1024 and row[3] in (4, 8)]
COPIES = [row for row in RECORD["requests"] if row[:2] == ["CG16", 16] and row[2] > 1]
CLOCKS = 24
LINES = 32  # of a copy


@pytest.mark.parametrize(
    "row", [row for row in LOADS if row[4] or row[0] >= 4], ids=lambda row: f"{row[0]}-{row[3]}-{row[4]}"
)
def test_loads_wait_where_as_many_are_under_way(row: list[Any]) -> None:
    """Before loads had a queue of their own, those that miss 32 lines each waited behind 48 others, and those that hit
    behind 60; 65 are under way on an H200. Loads of one and two lines that miss are off (deviation 61)."""
    lines, _, _, warps, hits, measured, *_ = row
    cost = RecordCycles(lines, max(1, lines // 4), 0, 0) if hits else RecordCycles(lines, lines, lines, 0, lines=lines)
    at = clocks([(ins("LDG.E", 2, write=i % 6), cost, 2) for i in range(CLOCKS)], warps)
    there, here = np.array(measured) - measured[0], at - at[0]
    assert np.abs(here - there).max() < (max(0.03 * there[-1], 20) if hits else 0.08 * there[-1])


@pytest.mark.parametrize("row", COPIES, ids=lambda row: f"{row[2]} warps")
def test_copies_read_their_registers_when_ten_are_before_them(row: list[Any]) -> None:
    """Each writes the registers of the one before. Where copies read theirs as they enter the shared queue, eight more
    are under way when warps begin to wait."""
    _, _, warps, measured = row
    cost = RecordCycles(0, LINES, LINES, 0, lines=LINES)
    at = clocks([(ins("LDGSTS.E.BYPASS.128", 2, read=0, wait=1), cost, 2)] * CLOCKS, warps)
    there, here = np.array(measured[1:]) - measured[1], at - at[0]
    assert np.abs(here - there)[:6].max() < 3.5 * LINES
