"""Says which sectors the executed blocks touched, by the list and the instruction that touched them.

A list is what one executed block touched with the requests that move alike (`Relation`). Each pair of a sector and an
instruction counts once in a list. There may be hundreds of millions of such pairs, so they are marked in a bitmap, for
one list and instruction at a time, and only those that are asked for are ever listed. What iterations touched that were
left out is marked, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.bitmap import Bits, Groups, Words
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.marks import alike, in_groups
from gemmsim.memory.grid.sector_lists import Sectors, in_lists
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE, WRITE_PAST_L1
from gemmsim.memory.requests.coalescer import SECTORS_PER_LINE, Coalesced

UNITS = (32, 16, 8, 4, 2)  # how many neighbouring sectors may be treated as one; a word of a bitmap has room for each
_BITS_SHIFT = 6  # entries of a word of a bitmap, and words for which a bit of its summary stands
_measure_groups, _collect_groups, _choose_groups, _list_words, _choose_in_words = (
    native_loop("grid/touched_loop", function, "grid/marking", "grid/bit_words")
    for function in ("measure_groups", "collect_groups", "choose_groups", "list_words", "choose_in_words")
)


def touched(requests: L1Requests, coalesced: Coalesced, movers: int, grain: int, most: int) -> Touched | None:
    """Return what the executed blocks touched: list block * movers + m has what the requests with the mover m touched
    in block `block`.

    grain  sectors that an entry stands for, which every request touches together
    most   entries between the first and the last one; None is returned where they lie further apart
    """
    first = coalesced.sector_offset[np.minimum(coalesced.sector_start[:-1], len(coalesced.sector_offset) - 1)]
    last = coalesced.sector_offset[coalesced.sector_start[1:] - 1]
    on = (requests.times - 1) * requests.step if len(requests.times) else np.int64(0)
    low = int((requests.base_sector + np.minimum(on, 0) + first[requests.shape]).min(initial=1 << 62)) // grain
    high = int((requests.base_sector + np.maximum(on, 0) + last[requests.shape]).max(initial=-1)) // grain
    return None if high - low >= most else Touched(requests, coalesced, movers, grain, low, high)


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


class Touched:
    """The lists of the executed blocks. An entry stands for some sectors that are always touched together.

    lists      how many there are
    groups     what is in them
    low, high  the least and the greatest number of an entry: that of its sector, divided by the sectors of an entry
    unit       how many aligned neighbouring entries, one of `UNITS` or 1, are always touched together, by the same
               instructions. So one of these can stand for all of them
    """

    def __init__(
        self, requests: L1Requests, coalesced: Coalesced, movers: int, grain: int, low: int, high: int
    ) -> None:
        blocks = (len(requests.start) - 1) // requests.warps_per_block
        self.lists, self._coalesced = blocks * movers, coalesced
        operation_of_pc = np.full(int(requests.pc.max(initial=0)) + 1, -1, np.int64)
        operation_of_pc[requests.pc] = _plain(requests.operation)
        pcs = np.flatnonzero(operation_of_pc >= 0)
        rank = np.cumsum(operation_of_pc >= 0) - 1
        key = requests.of_blocks(np.arange(blocks) * movers * len(pcs)) + requests.mover * len(pcs) + rank[requests.pc]
        asked = np.bincount(key, minlength=self.lists * len(pcs))
        found = np.flatnonzero(asked)
        group = (np.cumsum(asked > 0) - 1)[key]
        self._marks = in_groups(group, len(found), requests, coalesced, grain)
        start = low >> _BITS_SHIFT << _BITS_SHIFT
        words = max(0, high - start >> _BITS_SHIFT) + 1
        self._bits = Bits(np.zeros(words, np.uint64), np.zeros((words >> _BITS_SHIFT) + 1, np.uint64), start)
        number, place = alike(self._marks)
        # Groups that lie apart by whole units have their entries at the same places of units. When only some groups
        # are marked it is known how many entries a unit has at most.
        apart_by, self.unit, first = 0, 1, np.zeros(0, np.int64)
        while self.unit > apart_by:
            apart_by, marked = self.unit, len(first)
            _, first, of_group = np.unique(number * apart_by + place % apart_by, return_index=True, return_inverse=True)
            if len(first) == marked:  # all that are different are known
                break
            entries, apart = np.zeros(len(found), np.int64), np.zeros(len(UNITS), np.uint64)
            _measure_groups(self._marks, coalesced, self._bits, first, entries, apart)
            self.unit = next((UNITS[-1 - n] >> 1 for n, differ in enumerate(apart.tolist()) if differ), UNITS[0])
        self._first = first[of_group]
        self._behind = place - place[self._first]
        entries = entries[self._first]
        pc = pcs[found % max(len(pcs), 1)]
        self.groups = Groups(found // max(len(pcs), 1), pc, operation_of_pc[pc], entries)
        self.low, self.high = low, high

    def _collected(
        self, groups: NDArray[np.int64], ends: NDArray[np.int64], unit: int, columns: tuple[NDArray[np.int64], ...]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return units of entries, one list after the other, and how many of them are in each list.

        groups   what is listed, and `ends` where each list ends in it
        columns  for each list, int64 [lists]: every how many units are listed, how many there were before, and how many
                 are listed at most
        """
        every, before, most = columns
        begins = np.cumsum(most) - most
        sector = np.empty(int(most.sum()), np.int64)
        lists = np.stack([ends, begins, every, before, np.zeros_like(most)], axis=1)
        _collect_groups(self._marks, self._coalesced, self._bits, groups, lists, unit, sector)
        return _filled(sector, begins, lists[:, 4]), lists[:, 4]

    def _collected_alone(
        self, groups: NDArray[np.int64], unit: int, columns: tuple[NDArray[np.int64], ...], low: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """Return the groups in another order, units of each of them as a list by itself, and how many these are.

        columns  as of `_collected`
        low      the unit from which those that are returned are counted

        Of groups that are alike one is marked, and units are chosen for each from its words.
        """
        _, number, size = np.unique(self._first[groups], return_inverse=True, return_counts=True)
        order = np.argsort(number, kind="stable")
        shared = size[number[order]] > 1
        single, order = order[~shared], order[shared]
        sector, count = self._collected(
            groups[single], np.arange(1, len(single) + 1), unit, tuple(column[single] for column in columns)
        )
        sectors, counts, listed = [_from(low, sector)], [count], -1
        words = Words.room_for(min(int(self.groups.entries[groups].max(initial=0)), len(self._bits.words)))
        for group, every, before in zip(groups[order].tolist(), *(c[order].tolist() for c in columns[:2]), strict=True):
            if self._first[group] != listed:
                listed = int(self._first[group])
                found = _list_words(self._marks, self._coalesced, self._bits, listed, unit, words)
            chosen = np.empty(self.groups.entries[group] // unit // every + 1, np.int64)
            first = self._bits.low + int(self._behind[group])
            size = _choose_in_words(words, found, unit, -before % every, every, first, chosen)
            sectors.append(_from(low, chosen[:size]))
            counts.append(np.array([len(sectors[-1])]))
        return groups[np.append(single, order)], np.concatenate(sectors), np.concatenate(counts)

    def _chosen_together(
        self, groups: NDArray[np.int64], units: NDArray[np.int64], unit: int, every: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, of all units that those of some groups touch that are of one list, every `every`-th one, for each
        group that touches it, one group after the other; and how many they are of each group.

        units  int64 [groups] how many each touches
        """
        ends = np.flatnonzero(np.diff(self.groups.list[groups], append=-1)) + 1
        most = -(-np.add.reduceat(units, np.append(0, ends[:-1])) // every)
        kept, count = self._collected(groups, ends, unit, (np.full_like(most, every), np.zeros_like(most), most))
        of_list = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        stop = np.cumsum(count)[of_list]
        most = np.minimum(units, count[of_list])
        begins = np.cumsum(most) - most
        sector = np.empty(int(most.sum()), np.int64)
        chosen = np.stack([stop - count[of_list], stop, begins, np.zeros_like(stop)], axis=1)
        _choose_groups(self._marks, self._coalesced, self._bits, groups, chosen, unit, kept, sector)
        return _filled(sector, begins, chosen[:, 3]), chosen[:, 3]

    def every(self, unit: int, every: int, low: int) -> Sectors:
        """Return the lists in units of `unit` entries, and of each list every `every`-th one, in the order of sectors,
        which are counted from `low`.

        Neighbours in memory then follow one another, which is several times as fast. Instructions of a list that store
        have the same ones, so that what several of them store to is dirty once.
        """
        groups, units = self.groups, self.groups.entries // unit
        length = np.bincount(groups.list, units, self.lists).astype(np.int64)
        # How many entries of its list come before those of each group.
        before = np.cumsum(units) - units - (np.cumsum(length) - length)[groups.list]
        stores = groups.operation != READ
        together = stores & (np.bincount(groups.list[stores], minlength=self.lists) > 1)[groups.list] & (every > 1)
        most = -(-(before + units) // every) - -(-before // every)
        alone, those = np.flatnonzero(~together), np.flatnonzero(together)
        columns = np.full(len(alone), every), before[alone], most[alone]
        alone, sector, count = self._collected_alone(alone, unit, columns, low)
        if len(those):
            more, more_count = self._chosen_together(those, units[those], unit, every)
            sector, count = np.concatenate((sector, _from(low, more))), np.concatenate((count, more_count))
            alone = np.concatenate((alone, those))
        return in_lists(self.groups, self.lists, alone, sector, count)

    def forget(self) -> None:
        """Forget the requests and the bitmap, which may be a hundred megabytes: no more units are wanted."""
        del self._marks, self._bits


def _from(low: int, units: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the numbers of units counted from one on. There may be millions, in a range of 2**30."""
    return (units - low).astype(np.int32)


def _filled(sector: NDArray[np.int64], begins: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what is in `sector` of each list, one after the other: `count` units from where it begins on."""
    chosen = np.arange(int(count.sum())) + np.repeat(begins - (np.cumsum(count) - count), count)
    return sector if len(chosen) == len(sector) else sector[chosen]


def _plain(operation: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return operations as L2 knows them: it does not matter whether they go past L1."""
    operation = np.where(operation == READ_PAST_L1, np.uint8(READ), operation)
    return np.where(operation == WRITE_PAST_L1, np.uint8(WRITE), operation)
