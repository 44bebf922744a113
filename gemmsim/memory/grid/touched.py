"""Says which sectors the executed blocks touched, by the list and the instruction that touched them.

A list is what one executed block touched with the requests that move alike (`Relation`). Each pair of a sector and an
instruction counts once in a list. There may be hundreds of millions of such pairs, so they are marked in a bitmap, for
one list and instruction at a time, and only those that are asked for are ever listed (`Marked`). Where iterations of
loops were left out there are few, but some stand for more than others: these are listed and sorted (`Listed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE, WRITE_PAST_L1
from gemmsim.memory.requests.coalescer import SECTORS_PER_LINE, Coalesced
from gemmsim.support.sorting import distinct, new_rows, order_by

UNITS = (32, 16, 8, 4, 2)  # how many neighbouring sectors may be treated as one; a word of a bitmap has room for each
_BITS_SHIFT = 6  # entries of a word of a bitmap, and words for which a bit of its summary stands
_mark = native_loop("grid/touched_loop", "mark")
_measure = native_loop("grid/touched_loop", "measure")
_collect = native_loop("grid/touched_loop", "collect")


@dataclass(frozen=True)
class Sectors:
    """Lists of what blocks access, in which each pair of a sector and an instruction occurs once; all int64.

    Where iterations of loops were left out, an entry stands for `times` sectors, and pairs may occur several times,
    first the one that stands for most.

    List i has the entries start[i]:start[i + 1]. The other arrays have one element an entry.
    """

    start: NDArray[np.int64]
    sector: NDArray[np.int64]
    pc: NDArray[np.int64]
    operation: NDArray[np.int64]
    times: NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """What an instruction has in a list, one element a pair of them, in ascending order; all int64.

    list, pc, operation  number of the list, instruction, READ, WRITE or ATOMIC
    entries              its entries in the list
    sectors              what these stand for, in the same unit
    """

    list: NDArray[np.int64]
    pc: NDArray[np.int64]
    operation: NDArray[np.int64]
    entries: NDArray[np.int64]
    sectors: NDArray[np.int64]


class Touched(Protocol):
    """The lists of the executed blocks. An entry stands for some sectors that are always touched together.

    lists      how many there are
    groups     what is in them
    low, high  the least and the greatest number of an entry: that of its sector, divided by the sectors of an entry
    unit       how many aligned neighbouring entries, one of `UNITS` or 1, are always touched together, by the same
               instructions. So one of these can stand for all of them
    sampled    whether entries stand for others whose iterations were left out
    """

    lists: int
    groups: Groups
    low: int
    high: int
    unit: int
    sampled: bool

    def every(self, unit: int, every: int, low: int) -> Sectors:
        """Return the lists in units of `unit` entries, and of each list every `every`-th one, in the order of sectors,
        which are counted from `low`.

        Neighbours in memory then follow one another, which is several times as fast. Only the entries of one sector
        need to stay in their order.
        """
        ...


def touched(
    requests: L1Requests, coalesced: Coalesced, movers: int, grain: int, most: int, times: NDArray[np.int64] | None
) -> Touched | None:
    """Return what the executed blocks touched: list block * movers + m has what the requests with the mover m touched
    in block `block`.

    grain  sectors that an entry stands for, which every request touches together
    most   entries between the first and the last one; None is returned where they lie further apart
    times  int64 [requests] how many requests to different places each stands for (`Repeats`); None where that is one
    """
    if times is not None:
        return Listed(_sectors(requests, coalesced, movers, grain, times))
    first = coalesced.sector_offset[np.minimum(coalesced.sector_start[:-1], len(coalesced.sector_offset) - 1)]
    last = coalesced.sector_offset[coalesced.sector_start[1:] - 1]
    low = int((requests.base_sector + first[requests.shape]).min(initial=1 << 62)) // grain
    high = int((requests.base_sector + last[requests.shape]).max(initial=-1)) // grain
    return None if high - low >= most else Marked(requests, coalesced, movers, grain, low, high)


def whole_lines(requests: L1Requests, coalesced: Coalesced) -> bool:
    """Return whether every request touches all sectors of each of its lines. Bases are at the beginning of lines."""
    used = np.unique(requests.shape)
    count = coalesced.sectors[used]
    if (count % SECTORS_PER_LINE).any():
        return False
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    offset = coalesced.sector_offset[np.repeat(coalesced.sector_start[used], count) + within]
    first = offset[::SECTORS_PER_LINE, None]
    lines = offset.reshape(-1, SECTORS_PER_LINE) == first + np.arange(SECTORS_PER_LINE)
    return bool(lines.all() and not (first % SECTORS_PER_LINE).any())


@dataclass(frozen=True)
class _Bits:
    """A bitmap of entries from a first one on, of which most are not set.

    words    uint64 [entries / 64] a bit an entry
    summary  uint64 [words / 64] a bit a word: whether it has any bit
    low      the entry of the first bit, a multiple of 64
    """

    words: NDArray[np.uint64]
    summary: NDArray[np.uint64]
    low: int


class Marked:
    """`Touched`, made from requests that all count the same."""

    sampled = False

    def __init__(
        self, requests: L1Requests, coalesced: Coalesced, movers: int, grain: int, low: int, high: int
    ) -> None:
        blocks = (len(requests.start) - 1) // requests.warps_per_block
        self.lists, self._grain = blocks * movers, grain
        self._base, self._shape, self._coalesced = requests.base_sector, requests.shape, coalesced
        operation_of_pc = np.full(int(requests.pc.max(initial=0)) + 1, -1, np.int64)
        operation_of_pc[requests.pc] = _plain(requests.operation)
        pcs = np.flatnonzero(operation_of_pc >= 0)
        rank = np.cumsum(operation_of_pc >= 0) - 1
        key = requests.of_blocks(np.arange(blocks) * movers * len(pcs)) + requests.mover * len(pcs) + rank[requests.pc]
        asked = np.bincount(key, minlength=self.lists * len(pcs))
        found = np.flatnonzero(asked)
        group = (np.cumsum(asked > 0) - 1)[key]
        # Small numbers are sorted several times as fast.
        self._order = np.argsort(group.astype(np.uint16) if len(found) < 1 << 16 else group, kind="stable")
        self._ends = np.cumsum(asked[found])
        start = low >> _BITS_SHIFT << _BITS_SHIFT
        words = max(0, high - start >> _BITS_SHIFT) + 1
        self._bits = _Bits(np.zeros(words, np.uint64), np.zeros((words >> _BITS_SHIFT) + 1, np.uint64), start)
        entries, apart = np.zeros(len(found), np.int64), np.zeros(len(UNITS), np.uint64)
        for number in self._marked():
            entries[number] = _measure(self._bits, apart)
        pc = pcs[found % max(len(pcs), 1)]
        self.groups = Groups(found // max(len(pcs), 1), pc, operation_of_pc[pc], entries, entries)
        self.low, self.high = low, high
        self.unit = next((UNITS[-1 - n] >> 1 for n, differ in enumerate(apart.tolist()) if differ), UNITS[0])

    def _marked(self) -> Iterator[int]:
        """Yield each group when its entries are those of the bitmap, which is then to be emptied."""
        first = 0
        for group, end in enumerate(self._ends.tolist()):
            _mark(self._order[first:end], self._base, self._shape, self._coalesced, self._grain, self._bits)
            first = end
            yield group

    def every(self, unit: int, every: int, low: int) -> Sectors:
        groups = self.groups
        length = np.bincount(groups.list, groups.entries // unit, self.lists).astype(np.int64)
        # How many entries of its list come before those of each group.
        before = np.cumsum(groups.entries // unit) - groups.entries // unit
        before -= (np.cumsum(length) - length)[groups.list]
        chosen = -(-(before + groups.entries // unit) // every) - -(-before // every)
        sector, ends = np.empty(int(chosen.sum()), np.int64), np.cumsum(chosen)
        for group in self._marked():
            part = sector[ends[group] - chosen[group] : ends[group]]
            _collect(self._bits, unit, every, int(before[group]), part)
        number, pc, operation = (np.repeat(column, chosen) for column in (groups.list, groups.pc, groups.operation))
        order = order_by(number, sector)
        start = np.concatenate([[0], np.cumsum(-(-length // every))])
        return Sectors(start, sector[order] - low, pc[order], operation[order], np.ones(len(order), np.int64))


class Listed:
    """`Touched`, made from lists."""

    def __init__(self, lists: Sectors) -> None:
        self._sectors, self.lists = lists, len(lists.start) - 1
        self.sampled = bool((lists.times > 1).any())
        number = np.repeat(np.arange(self.lists), np.diff(lists.start))
        pcs = int(lists.pc.max(initial=0)) + 1
        key, first, of_entry = np.unique(number * pcs + lists.pc, return_index=True, return_inverse=True)
        weight = np.bincount(of_entry.reshape(-1), lists.times, len(key)).astype(np.int64)
        entries = np.bincount(of_entry.reshape(-1), minlength=len(key))
        self.groups = Groups(key // pcs, key % pcs, lists.operation[first], entries, weight)
        self.low, self.high = int(lists.sector.min(initial=1 << 62)), int(lists.sector.max(initial=-1))
        self.unit = next((unit for unit in UNITS if self._together(unit)), 1)

    def _together(self, unit: int) -> bool:
        lists = self._sectors
        if len(lists.sector) % unit or (lists.start % unit).any():
            return False
        sector = lists.sector.reshape(-1, unit)
        together = (sector == sector[:, :1] + np.arange(unit)).all() and not (sector[:, 0] % unit).any()
        columns = (lists.pc, lists.operation, lists.times)
        return bool(together and all((x.reshape(-1, unit) == x[::unit, None]).all() for x in columns))

    def every(self, unit: int, every: int, low: int) -> Sectors:
        lists = self._sectors
        start, sector = lists.start // unit, lists.sector[::unit] // unit
        number = np.repeat(np.arange(self.lists), np.diff(start))
        ordered = order_by(number, sector)
        number, sector = number[ordered], sector[ordered]
        kept = np.flatnonzero(_chosen(number, sector, lists.pc[::unit][ordered], every))
        chosen = ordered[kept]
        start = np.searchsorted(number[kept], np.arange(self.lists + 1))
        columns = (column[::unit][chosen] for column in (lists.pc, lists.operation, lists.times))
        return Sectors(start, sector[kept] - low, *columns)


def _chosen(
    number: NDArray[np.int64], sector: NDArray[np.int64], pc: NDArray[np.int64], every: int
) -> NDArray[np.bool_]:
    """Choose every `every`-th sector of those that the same instructions touch in a list: bool [entries].

    All entries of a sector are chosen, or none, so that one to which several instructions store counts once.

    number, sector, pc  of entries, in the order of lists and sectors
    """
    new = new_rows(number, sector)
    first = np.flatnonzero(new)
    if not len(first):
        return new
    mixed = (pc.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    together = np.unique(np.add.reduceat(mixed, first), return_inverse=True)[1].reshape(-1)
    order = order_by(number[first], together)
    begins = new_rows(number[first][order], together[order])
    place = np.arange(len(order))
    rank = place - np.maximum.accumulate(np.where(begins, place, 0))
    of_sector = np.zeros(len(order), np.bool_)
    of_sector[order] = rank % every == 0
    return of_sector[np.cumsum(new) - 1]


def _sectors(requests: L1Requests, coalesced: Coalesced, movers: int, grain: int, times: NDArray[np.int64]) -> Sectors:
    """List what `touched` describes."""
    blocks = (len(requests.start) - 1) // requests.warps_per_block
    block = requests.of_blocks(np.arange(blocks))
    pc_of_shape = np.zeros(len(coalesced.sectors), np.int64)
    operation_of_pc = np.zeros(int(requests.pc.max(initial=0)) + 1, np.int64)
    pc_of_shape[requests.shape], operation_of_pc[requests.pc] = requests.pc, _plain(requests.operation)
    # Warps repeat each other's requests: drop the repeats before each request becomes its sectors.
    stands, rank = np.unique(-times, return_inverse=True)  # those that stand for most come first
    columns = (block * movers + requests.mover, requests.shape, requests.base_sector, rank.reshape(-1))
    number, shape, base, rank = distinct(*columns)
    count = coalesced.sectors[shape] // grain
    request = np.repeat(np.arange(len(shape)), count)
    within = np.arange(len(request)) - np.repeat(np.cumsum(count) - count, count)
    pc = pc_of_shape[shape[request]]
    sector = base[request] + coalesced.sector_offset[coalesced.sector_start[shape[request]] + within * grain]
    sector //= grain
    number, pc, sector, rank = distinct(number[request], pc, sector, rank[request])
    start = np.searchsorted(number, np.arange(blocks * movers + 1))
    return Sectors(start, sector, pc, operation_of_pc[pc], -stands[rank])


def _plain(operation: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return operations as L2 knows them: it does not matter whether they go past L1."""
    operation = np.where(operation == READ_PAST_L1, np.uint8(READ), operation)
    return np.where(operation == WRITE_PAST_L1, np.uint8(WRITE), operation)
