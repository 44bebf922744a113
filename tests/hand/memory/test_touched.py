"""What executed blocks touched: the bitmap against sets, and how much memory it takes."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from requests_builder import coalesced_of, requests_of

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.marks import alike
from gemmsim.memory.grid.sector_lists import Sectors
from gemmsim.memory.grid.touched import touched, whole_lines
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE
from gemmsim.memory.requests.coalescer import Coalesced

FAR = 1 << 28


@dataclass
class Listed:
    """What requests touch, as sets: for each list and instruction its entries."""

    entries: dict[tuple[int, int], set[int]]

    @classmethod
    def of(cls, requests: L1Requests, coalesced: Coalesced, movers: int, grain: int) -> Listed:
        found: dict[tuple[int, int], set[int]] = {}
        block = requests.of_blocks(np.arange((len(requests.start) - 1) // requests.warps_per_block))
        for i, shape in enumerate(requests.shape.tolist()):
            key = int(block[i] * movers + requests.mover[i]), int(requests.pc[i])
            first = coalesced.sector_start[shape]
            offsets = coalesced.sector_offset[first : first + coalesced.sectors[shape]]
            times = int(requests.times[i]) if len(requests.times) and requests.step[i] else 1
            for more in range(times):
                at = requests.base_sector[i] + offsets + (more * requests.step[i] if more else 0)
                found.setdefault(key, set()).update((at // grain).tolist())
        return cls(found)

    def whole(self, lists: int, unit: int, low: int) -> Sectors:
        """All entries, in the order of instructions and sectors."""
        rows = [(n, pc, at) for (n, pc), every in sorted(self.entries.items()) for at in {e // unit for e in every}]
        number, pc, sector = np.array(sorted(rows)).T
        operation = np.array([READ, READ_PAST_L1, WRITE])[pc % 3]
        operation = np.where(operation == READ_PAST_L1, READ, operation)
        return Sectors(np.searchsorted(number, np.arange(lists + 1)), sector - low, pc, operation)


def hold(requests: L1Requests, coalesced: Coalesced, unit: int) -> None:
    """Hold what two blocks of four movers touched against sets."""
    marked, listed = touched(requests, coalesced, 4, 1, FAR), Listed.of(requests, coalesced, 4, 1)
    assert marked is not None and marked.unit == unit and marked.lists == 8
    every = set().union(*listed.entries.values())
    assert (marked.low, marked.high) == (min(every), max(every))
    groups = zip(marked.groups.list.tolist(), marked.groups.pc.tolist(), strict=True)
    assert dict(zip(groups, marked.groups.entries.tolist(), strict=True)) == {
        key: len(entries) for key, entries in listed.entries.items()
    }
    whole = listed.whole(8, unit, 5)
    for every_nth in (1, 3, 50):
        for name, column in vars(every_one_of(whole, every_nth)).items():
            assert column.tolist() == getattr(marked.every(unit, every_nth, 5), name).tolist(), (every_nth, name)


@pytest.mark.parametrize(
    ("sectors", "whole"),
    [
        ([0, 1, 2, 3], True),
        ([0, 1, 2, 3, 8, 9, 10, 11], True),
        ([0, 1, 2], False),
        ([0, 1, 2, 4], False),
        ([1, 2, 3, 4], False),  # of two lines
        ([0, 1, 2, 3, 4, 5, 6, 8], False),
    ],
)
def test_whether_every_request_touches_whole_lines(sectors: list[int], whole: bool) -> None:
    """That of another shape, which is used or not, touches half a line."""
    coalesced, zero = coalesced_of([sectors, [0, 1]]), np.zeros(2, np.int64)
    for shape, found in (([0, 0], whole), ([0, 1], False)):
        requests = requests_of(4 * np.arange(2), np.array(shape), zero, np.arange(2), 1, 1)
        assert whole_lines(requests, coalesced) is found


@pytest.mark.parametrize("unit", [1, 2, 4, 8, 16, 32])
def test_the_bitmap_has_what_is_touched(unit: int) -> None:
    """Two blocks of three warps, each with 500 requests that overlap, by four instructions and four movers. What is
    touched comes in aligned pieces of `unit` sectors."""
    chance = np.random.default_rng(unit)
    pieces = [[0, 1], [0, 5, 6], [2], [0, 1, 2, 3]]
    coalesced = coalesced_of([[unit * p + s for p in piece for s in range(unit)] for piece in pieces])
    base, shape, mover = (chance.integers(n, size=3000) for n in (700, 4, 4))
    requests = requests_of(unit * base + (1 << 20), shape, mover, np.array([0, 3, 7, 8]), 6, 3)
    hold(requests, coalesced, unit)


def test_requests_that_stand_for_several_touch_what_all_of_these_do() -> None:
    """Each stands for up to six, some at the same place and others further on or back."""
    chance = np.random.default_rng(7)
    coalesced = coalesced_of([[0], [0, 5, 6]])
    base, shape, mover, times, step = (chance.integers(n, size=600) for n in (5000, 2, 4, 6, 5))
    requests = requests_of(base + (1 << 20), shape, mover, np.array([0, 8]), 6, 3)
    hold(replace(requests, times=times + 1, step=(step - 2) * 700), coalesced, 1)


def test_rows_that_continue_one_another_are_marked_together() -> None:
    """Rows of equal and of unequal length, many of which begin where those of another request end, and that move by
    their own length, by one, or far."""
    chance = np.random.default_rng(3)
    coalesced = coalesced_of([[0, 1, 2, 3], [0, 1, 70, 71], [0, 5, 6], [9]])
    base, shape, mover, times, step = (chance.integers(n, size=900) for n in (40, 4, 4, 6, 9))
    requests = requests_of(2 * base + (1 << 20), shape, mover, np.array([0, 3, 7, 8]), 6, 3)
    hold(replace(requests, times=times + 1, step=np.array([-700, -64, -4, -2, 0, 1, 2, 4, 8])[step]), coalesced, 1)


def test_rows_at_even_distances_are_marked_word_by_word() -> None:
    """Rows of one, two and five sectors that come again up to 40 times, after as many sectors as divide a word of 64,
    do not, or are whole words."""
    chance = np.random.default_rng(5)
    coalesced = coalesced_of([[0], [0, 1, 70, 71], [3, 4, 5, 6, 7], [0, 2, 3]])
    base, shape, mover, times, step = (chance.integers(n, size=300) for n in (500, 4, 4, 40, 12))
    requests = requests_of(base + (1 << 20), shape, mover, np.array([0, 3, 7, 8]), 6, 3)
    steps = np.array([-32, -16, -8, -1, 0, 3, 4, 12, 16, 32, 64, 128])[step]
    hold(replace(requests, times=times + 1, step=steps), coalesced, 1)


def test_groups_that_are_alike_are_marked_once() -> None:
    """Of eight lists, four have the requests of the first ones 64 or 640 sectors further on, and two 32: these are at
    other places of words."""
    chance = np.random.default_rng(6)
    coalesced = coalesced_of([[0], [0, 1, 70, 71], [3, 4, 5, 6, 7], [0, 2, 3]])
    columns = [chance.integers(n, size=60) for n in (500, 4, 9, 6)]
    base, shape, times, step = (np.tile(column, 8) for column in columns)
    base += np.repeat([0, 64, 32, 640, 64, 7, 0, 32], 60) + (1 << 20)
    requests = requests_of(base, shape, np.repeat([0, 1, 2, 3] * 2, 60), np.array([0, 3, 7, 8]), 2, 1)
    requests = replace(requests, times=times + 1, step=np.array([-64, 0, 4, 8, 64, 700])[step])
    hold(requests, coalesced, 1)
    marked = touched(requests, coalesced, 4, 1, FAR)
    assert marked is not None
    number, place = alike(marked._marks)
    # Each list has requests of each of four instructions. The shifts from the first list with the same requests on
    assert number.reshape(8, 4)[:, 0].tolist() == [0, 0, 0, 0, 0, 0, 0, 0]
    assert (place - place[0]).reshape(8, 4)[:, 0].tolist() == [0, 64, 32, 640, 64, 7, 0, 32]


@pytest.mark.parametrize("unit", [1, 2, 4, 8, 16, 32])
def test_groups_that_are_alike_elsewhere_in_a_unit_are_marked_by_themselves(unit: int) -> None:
    """Eight lists have the same requests, each of aligned pieces of `unit` sectors, but for a shift by as many or by
    half as many. By the first ones alone, there are `unit` sectors in a unit."""
    chance = np.random.default_rng(unit)
    coalesced = coalesced_of([[unit * p + s for p in piece for s in range(unit)] for piece in ([0], [0, 3], [1, 2])])
    base, shape, times, step = (np.tile(chance.integers(n, size=60), 8) for n in (50, 3, 4, 3))
    for last in (unit, unit // 2):
        shift = np.repeat(unit * np.array([0, 1, 5, 0, 2, 64, 7, 0]) + np.array([0] * 7 + [last]), 60)
        requests = requests_of(
            unit * base + shift + (1 << 20), shape, np.repeat([0, 1, 2, 3] * 2, 60), np.arange(4), 2, 1
        )
        requests = replace(requests, times=times + 1, step=unit * np.array([0, 1, 9])[step])
        hold(requests, coalesced, max(1, unit // 2) if last < unit else unit)


def test_lines_that_continue_one_another_are_marked_together() -> None:
    """Requests of two rows of a line, and of one of two, which move by one, two or 100 lines."""
    chance = np.random.default_rng(4)
    coalesced = coalesced_of([[0, 1, 2, 3, 400, 401, 402, 403], [0, 1, 2, 3, 4, 5, 6, 7]])
    base, shape, times, step = (chance.integers(n, size=60) for n in (40, 2, 6, 5))
    requests = requests_of(4 * base + 4000, shape, np.zeros(60, int), np.zeros(2, int), 2, 1)
    requests = replace(requests, times=times + 1, step=4 * np.array([-2, 0, 1, 2, 100])[step])
    found, listed = touched(requests, coalesced, 1, 4, FAR), Listed.of(requests, coalesced, 1, 4)
    assert found is not None
    for number, entries in listed.entries.items():
        of_list = slice(*found.every(1, 1, 0).start[number[0] : number[0] + 2].tolist())
        assert found.every(1, 1, 0).sector[of_list].tolist() == sorted(entries)


def every_one_of(lists: Sectors, every: int) -> Sectors:
    """Of each list, in the order of instructions and sectors, every `every`-th entry, in the order of sectors."""
    chosen: list[int] = []
    start = [0]
    for first, stop in pairwise(lists.start.tolist()):
        ordered = sorted(range(first, stop), key=lambda n: (lists.pc[n], lists.sector[n]))[::every]
        chosen += sorted(ordered, key=lambda n: lists.sector[n])
        start.append(len(chosen))
    columns = (column[chosen] for column in (lists.sector, lists.pc, lists.operation))
    return Sectors(np.array(start), *columns)


def test_entries_of_whole_lines() -> None:
    """A request of two lines and one of a line, four sectors each: lines 2, 3 and 3 are two entries of one list."""
    coalesced = coalesced_of([[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3]])
    requests = requests_of(np.array([8, 12]), np.array([0, 1]), np.zeros(2), np.array([2, 2]), 1, 1)
    found = touched(requests, coalesced, 1, 4, FAR)
    assert found is not None
    assert found.groups.entries.tolist() == [2] and (found.low, found.high, found.unit) == (2, 3, 2)
    assert found.every(1, 1, 0).sector.tolist() == [2, 3]
    assert found.every(2, 1, 0).sector.tolist() == [1]


def test_sectors_that_lie_too_far_apart_are_not_marked() -> None:
    coalesced = coalesced_of([[0]])
    requests = requests_of(np.array([0, FAR]), np.zeros(2, int), np.zeros(2), np.array([0]), 1, 1)
    assert touched(requests, coalesced, 1, 1, FAR) is None
    assert touched(requests, coalesced, 1, 1, FAR + 1) is not None


def test_memory_follows_the_requests_and_not_their_sectors() -> None:
    """20,000 bulk copies of 512 sectors: 10 million entries, which took 1 GB as lists, are a bitmap of 1.3 MB."""
    coalesced = coalesced_of([list(range(512))])
    nothing = np.zeros(20_000, np.int64)
    requests = requests_of(512 * np.arange(20_000), nothing, nothing, np.array([0]), 4, 4)
    tracemalloc.start()
    try:
        found = touched(requests, coalesced, 1, 1, FAR)
        assert found is not None and found.groups.entries.tolist() == [512 * 20_000] and found.unit == 32
        assert len(found.every(32, 100, 0).sector) == 512 * 20_000 // 3200
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_what_several_instructions_store_to_is_chosen_for_all_of_them() -> None:
    """Two instructions store to each of 10 sectors, a third one to every second, and one reads them: of three of its
    own, and of the three at which all stores are looked at, too."""
    coalesced = coalesced_of([[0]] * 4)
    base = np.array([*range(10), *range(10), *range(0, 10, 2), *range(10)])
    shape = np.array([0] * 10 + [1] * 10 + [2] * 5 + [3] * 10)
    requests = requests_of(base, shape, np.zeros(35), np.array([2, 5, 8, 0]), 1, 1)
    found = touched(requests, coalesced, 1, 1, FAR)
    assert found is not None
    for every, places in ((1, range(10)), (3, [0, 3, 6, 9]), (4, [0, 4, 8])):
        chosen = found.every(1, every, 0)
        at = {pc: chosen.sector[chosen.pc == pc].tolist() for pc in (0, 2, 5, 8)}
        assert at[0] == [*range(0, 10, every)] and at[2] == at[5] == [*places]
        assert at[8] == [place for place in places if place % 2 == 0]
        assert chosen.start.tolist() == [0, len(chosen.sector)] and (np.diff(chosen.sector) >= 0).all()


def test_what_one_list_stores_to_chooses_nothing_of_another_list() -> None:
    """Two blocks, of each of which two instructions store to ten sectors: five of these are the same."""
    coalesced = coalesced_of([[0]] * 2)
    base, shape = np.array([*range(10), *range(10), *range(5, 15), *range(5, 15)]), np.repeat([0, 1, 0, 1], 10)
    requests = requests_of(base, shape, np.zeros(40), np.array([2, 5]), 2, 1)
    found = touched(requests, coalesced, 1, 1, FAR)
    assert found is not None
    chosen = found.every(1, 3, 0)
    lists = [chosen.sector[first:stop].tolist() for first, stop in pairwise(chosen.start.tolist())]
    assert lists == [[0, 0, 3, 3, 6, 6, 9, 9], [5, 5, 8, 8, 11, 11, 14, 14]]
