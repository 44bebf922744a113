"""The tag stage's banks and the data stage behind it: by hand, and against what an H200 counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gemmsim.gpu import load_gpu
from gemmsim.memory.requests import tags
from gemmsim.memory.requests.banks import wavefronts
from gemmsim.memory.requests.tags import LaneLayout, look_up

RECORDS = Path(__file__).parents[2] / "records"
TAGS = json.loads((RECORDS / "h200_tags.json").read_text())["requests"]
DATA = json.loads((RECORDS / "h200_wavefronts.json").read_text())["requests"]
AREA = 1 << 29  # a multiple of this leaves the low 22 bits of a line number as they are
# The record says that its lines are counted from a multiple of 512 MB. Two of its patterns, those that reach 32 MB
# (lines 0 and 2**18 + 1, 0 and 2**18 + 2), say that bit 25 of that address was set: one more line carries into bit 26.
RECORDED_AREA = AREA + (1 << 25)
ACTIVE = np.ones((1, 32), bool)
L1 = load_gpu("h200").l1


def bank_of(line: int) -> int:
    return tags.bank_of(line, L1.set_flips)


def lanes(offsets: np.ndarray, width: int = 4, shares: bool = True) -> LaneLayout:
    """Loads of `width` bytes a lane from a base that is a multiple of 128: offsets [shapes, 32]."""
    yes, none = np.ones(len(offsets), bool), np.zeros(len(offsets), np.int64)
    return LaneLayout(offsets >> 7, offsets // width, none + width // 4, yes & shares, yes, none, none)


def looked_up(
    offsets: list[int], width: int = 4, line: int = AREA >> 7, shares: bool = True, written: int = 0
) -> tuple[int, int]:
    """Tag cycles and wavefronts of one load that misses."""
    shape = replace(lanes(np.array([offsets], np.int64), width, shares), written=np.array([written]))
    cycles, waves = look_up(np.array([line * 128], np.uint64), np.zeros(1, np.int32), shape, L1)
    return int(cycles[0]), int(waves[0])


def cycles(lines: list[list[int]], base: int = AREA, per_cycle: int = 4) -> list[int]:
    """Tag cycles of requests with a lane on the first byte of each line."""
    offsets = np.array([[128 * row[i % len(row)] for i in range(32)] for row in lines], np.int64)
    bases = np.full(len(lines), base, np.uint64)
    l1 = replace(L1, tag_lines_per_cycle=per_cycle)
    return look_up(bases, np.arange(len(lines), dtype=np.int32), lanes(offsets), l1)[0].tolist()


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


@pytest.mark.parametrize("first", range(0, len(TAGS), 80))
def test_passes_as_an_h200_counts_them(first):
    some = TAGS[first : first + 80]
    found = [cycles([lines], RECORDED_AREA)[0] for lines, _ in some]
    assert found == [wavefronts for _, wavefronts in some]


def test_another_number_of_banks_spreads_the_lines_evenly():
    assert cycles([[0, 5, 10, 15], list(range(9))], per_cycle=8) == [1, 2]


def test_other_bits_make_another_hash():
    """Without the flip of bit 2, lines 4 and 5 are in the banks of 0 and 1; without any, every line is in bank 0."""
    assert [tags.bank_of(line, (1, 2, 0)) for line in (0, 1, 4, 5, 8)] == [0, 1, 0, 1, 0]
    offsets = lanes(np.array([[128 * (i % 4) for i in range(32)]], np.int64))
    for flips, expected in (((1, 2, 0), 1), ((0,), 4), ((3, 0, 0), 2)):
        l1 = replace(L1, set_flips=flips)
        assert look_up(np.array([AREA], np.uint64), np.zeros(1, np.int32), offsets, l1)[0].tolist() == [expected]


def test_the_fast_count_equals_the_slow_one():
    random = np.random.default_rng(3)
    lines = [sorted(set(random.integers(0, 1 << 20, random.integers(1, 32)).tolist())) for _ in range(200)]
    base = AREA + 128 * 777
    slow = [max(np.bincount([bank_of((base >> 7) + line) for line in row]).tolist()) for row in lines]
    assert cycles(lines, base) == slow


def test_the_passes_of_a_miss_are_served_one_after_another():
    """Four rows of eight words that lie in different banks. Lines 0 and 1 pass together, 0 and 5 do not: both in tag
    bank 0."""
    rows = [128 * line + 32 * k for k, line in enumerate((0, 1, 5, 10))]  # words 8k to 8k + 7
    offsets = [row + 4 * word for row in rows for word in range(8)]
    assert looked_up(offsets) == (3, 3)  # {0, 1}, {5}, {10}
    assert wavefronts(np.array([offsets]), ACTIVE, 4, merges=False).tolist() == [1]  # a hit
    assert looked_up(offsets, written=1) == (3, 4)


def test_groups_of_lanes_are_served_apart():
    """128-bit loads, eight lanes at a time: the first two groups in one line each, the others across lines 2 and 7, of
    which 7 = 111 in binary lies in bank 0 (1 ^ 2 ^ 1 = 2 with bits 0 to 2: 1, 2, 1)."""
    assert [bank_of(line) for line in (0, 1, 2, 7)] == [0, 1, 2, 2]
    across = [256 + 16 * i for i in range(4)] + [7 * 128 + 64 + 16 * i for i in range(4)]
    offsets = [16 * i for i in range(16)] + across * 2
    assert looked_up(offsets, 16) == (2, 1 + 1 + 2 + 2)


def test_a_copy_does_not_share_words():
    assert looked_up([0] * 32) == (1, 1)
    assert looked_up([0] * 32, shares=False) == (1, 32)


@pytest.mark.parametrize("first", range(0, len(DATA), 100))
def test_wavefronts_as_an_h200_counts_them(first):
    for kind, width, line, counted, offsets in DATA[first : first + 100]:
        if kind == "hit":
            found = int(wavefronts(np.array([offsets]), ACTIVE, width, merges=False)[0])
        else:
            found = looked_up(offsets, width, line, shares=kind == "miss")[1]
        assert found == counted, (kind, width, offsets)


def test_what_is_kept_of_earlier_requests_is_only_used_for_its_like():
    """Thousands of requests from many places, against the same one at a time."""
    random = np.random.default_rng(5)
    offsets = 16 * random.integers(0, 400, (50, 32))
    shapes, line = lanes(offsets, 16), random.integers(0, 1 << 22, 3000)
    shape = random.integers(0, 50, 3000).astype(np.int32)
    cycles, waves = look_up((line << 7).astype(np.uint64), shape, shapes, L1)
    for i in range(0, 3000, 7):
        assert (cycles[i], waves[i]) == looked_up(offsets[shape[i]].tolist(), 16, int(line[i]))
