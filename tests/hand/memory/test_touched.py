"""What executed blocks touched: the bitmap against the lists, and how much memory it takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from requests_builder import coalesced_of, requests_of

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.touched import Touched, touched
from gemmsim.memory.requests.cache_operations import READ, WRITE
from gemmsim.memory.requests.coalescer import Coalesced

FAR = 1 << 28


def both(requests: L1Requests, coalesced: Coalesced, movers: int, grain: int) -> tuple[Touched, Touched]:
    """Return what is marked, and what is listed because each request is said to stand for itself."""
    ones = np.ones(len(requests.pc), np.int64)
    found = tuple(touched(requests, coalesced, movers, grain, FAR, times) for times in (None, ones))
    assert found[0] is not None and found[1] is not None
    return found[0], found[1]


@pytest.mark.parametrize("unit", [1, 2, 4, 8, 16, 32])
def test_the_bitmap_has_what_the_lists_have(unit: int) -> None:
    """Two blocks of three warps, each with 500 requests that overlap, by four instructions and four movers. What is
    touched comes in aligned pieces of `unit` sectors."""
    chance = np.random.default_rng(unit)
    pieces = [[0, 1], [0, 5, 6], [2], [0, 1, 2, 3]]
    coalesced = coalesced_of([[unit * p + s for p in piece for s in range(unit)] for piece in pieces])
    base, shape, mover = (chance.integers(n, size=3000) for n in (700, 4, 4))
    requests = requests_of(unit * base + (1 << 20), shape, mover, np.array([0, 3, 7, 8]), 6, 3)
    marked, listed = both(requests, coalesced, 4, 1)
    for name in ("lists", "low", "high", "unit", "sampled"):
        assert getattr(marked, name) == getattr(listed, name), name
    assert marked.unit == unit
    assert {*zip(marked.groups.pc.tolist(), marked.groups.operation.tolist(), strict=True)} == {
        (0, READ),
        (3, READ),
        (7, READ),
        (8, WRITE),
    }
    for name, column in vars(marked.groups).items():
        assert column.tolist() == getattr(listed.groups, name).tolist(), name
    for every in (1, 3, 50):
        for name, column in vars(marked.every(unit, every, 5)).items():
            assert column.tolist() == getattr(listed.every(unit, every, 5), name).tolist(), (every, name)


def test_entries_of_whole_lines() -> None:
    """A request of two lines and one of a line, four sectors each: lines 2, 3 and 3 are two entries of one list."""
    coalesced = coalesced_of([[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3]])
    requests = requests_of(np.array([8, 12]), np.array([0, 1]), np.zeros(2), np.array([2, 2]), 1, 1)
    for found in both(requests, coalesced, 1, 4):
        assert found.groups.entries.tolist() == [2] and (found.low, found.high, found.unit) == (2, 3, 2)
        assert found.every(1, 1, 0).sector.tolist() == [2, 3]
        assert found.every(2, 1, 0).sector.tolist() == [1]


def test_sectors_that_lie_too_far_apart_are_not_marked() -> None:
    coalesced = coalesced_of([[0]])
    requests = requests_of(np.array([0, FAR]), np.zeros(2, int), np.zeros(2), np.array([0]), 1, 1)
    assert touched(requests, coalesced, 1, 1, FAR, None) is None
    assert touched(requests, coalesced, 1, 1, FAR + 1, None) is not None


def test_memory_follows_the_requests_and_not_their_sectors() -> None:
    """20,000 bulk copies of 512 sectors: 10 million entries, which took 1 GB as lists, are a bitmap of 1.3 MB."""
    coalesced = coalesced_of([list(range(512))])
    nothing = np.zeros(20_000, np.int64)
    requests = requests_of(512 * np.arange(20_000), nothing, nothing, np.array([0]), 4, 4)
    tracemalloc.start()
    try:
        found = touched(requests, coalesced, 1, 1, FAR, None)
        assert found is not None and found.groups.entries.tolist() == [512 * 20_000] and found.unit == 32
        assert len(found.every(32, 100, 0).sector) == 512 * 20_000 // 3200
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
