"""What executed blocks touched: the bitmap against the lists, and how much memory it takes."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from requests_builder import coalesced_of, requests_of

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.touched import Sectors, Touched, touched
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
    whole = listed.every(unit, 1, 5)
    for every in (1, 3, 50):
        for name, column in vars(every_one_of(whole, every)).items():
            assert column.tolist() == getattr(marked.every(unit, every, 5), name).tolist(), (every, name)


def every_one_of(lists: Sectors, every: int) -> Sectors:
    """Of each list, in the order of instructions and sectors, every `every`-th entry, in the order of sectors."""
    chosen: list[int] = []
    start = [0]
    for first, stop in pairwise(lists.start.tolist()):
        ordered = sorted(range(first, stop), key=lambda n: (lists.pc[n], lists.sector[n]))[::every]
        chosen += sorted(ordered, key=lambda n: lists.sector[n])
        start.append(len(chosen))
    columns = (column[chosen] for column in (lists.sector, lists.pc, lists.operation, lists.times))
    return Sectors(np.array(start), *columns)


def test_lists_keep_all_that_is_known_of_a_sector() -> None:
    """Two instructions store to each of 10 sectors, and four read every fourth one of 40 others. Of 10 sectors that the
    same instructions touch, numbers 0, 3, 6 and 9 are chosen. Every fourth one of the 40 would be read by one."""
    coalesced = coalesced_of([[0]] * 6)
    base = np.array([*range(10), *range(10), *range(20, 60)])
    shape = np.array([0] * 10 + [1] * 10 + [2, 3, 4, 5] * 10)
    requests = requests_of(base, shape, np.zeros(60), np.array([8, 9, 0, 1, 2, 3]), 1, 1)
    found = touched(requests, coalesced, 1, 1, FAR, np.full(60, 7))
    assert found is not None and found.sampled
    for every, places in ((1, range(10)), (3, [0, 3, 6, 9]), (4, [0, 4, 8])):
        chosen = found.every(1, every, 0)
        assert chosen.start.tolist() == [0, len(chosen.sector)] and (chosen.times == 7).all()
        stored = [(n, pc) for n in places for pc in (8, 9)]
        read = sorted((20 + 4 * n + pc, pc) for n in places for pc in range(4))
        assert [*zip(chosen.sector.tolist(), chosen.pc.tolist(), strict=True)] == stored + read


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
