"""The tag stage's banks: by hand, and against the wavefronts that an H200 counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gemmsim.memory.coalescer import coalesce
from gemmsim.memory.tags import bank_of, tag_cycles

RECORDED = json.loads((Path(__file__).parents[1] / "records" / "h200_tags.json").read_text())["requests"]
AREA = 1 << 29  # a multiple of this leaves the low 22 bits of a line number as they are


def requests(lines: list[list[int]], base: int = AREA) -> tuple[np.ndarray, np.ndarray, object]:
    """Requests with a lane on the first byte of each line: bases, shapes and their `Coalesced`."""
    offsets = np.array([[128 * row[i % len(row)] for i in range(32)] for row in lines], np.int64)
    coalesced = coalesce(offsets, np.ones(offsets.shape, bool), np.full(len(lines), 4, np.int64))
    return np.full(len(lines), base, np.uint64), np.arange(len(lines), dtype=np.int32), coalesced


def cycles(lines: list[list[int]], base: int = AREA, per_cycle: int = 4) -> list[int]:
    return tag_cycles(*requests(lines, base), per_cycle).tolist()


def test_neighbouring_lines_lie_in_different_banks():
    """Lines 0 to 3: bit 0 turns bank 1, bit 1 bank 2, both 3."""
    assert [bank_of(line) for line in range(4)] == [0, 1, 2, 3]
    assert cycles([[0, 1, 2, 3], [0, 1], [7]]) == [1, 1, 1]


def test_lines_of_one_bank_take_a_cycle_each():
    """5 = 101 in binary, bits 0 and 2 both turn bank 1: line 5 is in line 0's bank; 10 and 15 likewise."""
    assert [bank_of(line) for line in (0, 5, 10, 15)] == [0, 0, 0, 0]
    assert cycles([[0, 5], [0, 5, 10], [0, 5, 10, 15], [0, 5, 1]]) == [2, 3, 4, 2]


def test_where_a_request_begins_matters():
    """Lines 3 and 8 apart by 5: 3 is in bank 3, 8 = 1000 in bank 2; from line 0 on, the same step stays in a bank."""
    assert cycles([[0, 5]], AREA) == [2]
    assert cycles([[0, 5]], AREA + 3 * 128) == [1]


@pytest.mark.parametrize("first", range(0, len(RECORDED), 80))
def test_wavefronts_as_an_h200_counts_them(first):
    some = RECORDED[first : first + 80]
    found = [cycles([lines])[0] for lines, _ in some]
    assert found == [wavefronts for _, wavefronts in some]


def test_another_number_of_banks_spreads_the_lines_evenly():
    assert cycles([[0, 5, 10, 15], list(range(9))], per_cycle=8) == [1, 2]


def test_the_fast_count_equals_the_slow_one():
    random = np.random.default_rng(3)
    lines = [sorted(set(random.integers(0, 1 << 20, random.integers(1, 32)).tolist())) for _ in range(200)]
    base = AREA + 128 * 777
    slow = [max(np.bincount([bank_of((base >> 7) + line) for line in row]).tolist()) for row in lines]
    assert cycles(lines, base) == slow
