"""Says which sectors the executed blocks touched, by the list and the instruction that touched them.

A list is what one executed block touched with the requests that move alike (`Relation`). Each pair of a sector and an
instruction counts once in a list. There may be hundreds of millions of such pairs, so they are marked in a bitmap, for
one list and instruction at a time, and only those that are asked for are ever listed. What iterations touched that were
left out is marked, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE, WRITE_PAST_L1
from gemmsim.memory.requests.coalescer import SECTORS_PER_LINE, Coalesced
from gemmsim.support.sorting import new_rows, order_by

UNITS = (32, 16, 8, 4, 2)  # how many neighbouring sectors may be treated as one; a word of a bitmap has room for each
_BITS_SHIFT = 6  # entries of a word of a bitmap, and words for which a bit of its summary stands
_mark, _measure, _collect = (
    native_loop("grid/touched_loop", function, "grid/bit_words") for function in ("mark", "measure", "collect")
)


@dataclass(frozen=True)
class Sectors:
    """Lists of what blocks access, in which each pair of a sector and an instruction occurs once; all int64.

    List i has the entries start[i]:start[i + 1]. The other arrays have one element an entry.
    """

    start: NDArray[np.int64]
    sector: NDArray[np.int64]
    pc: NDArray[np.int64]
    operation: NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """What an instruction has in a list, one element a pair of them, in ascending order; all int64.

    list, pc, operation  number of the list, instruction, READ, WRITE or ATOMIC
    entries              its entries in the list
    """

    list: NDArray[np.int64]
    pc: NDArray[np.int64]
    operation: NDArray[np.int64]
    entries: NDArray[np.int64]


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
        self.lists, self._grain = blocks * movers, grain
        self._requests, self._coalesced = requests, coalesced
        operation_of_pc = np.full(int(requests.pc.max(initial=0)) + 1, -1, np.int64)
        operation_of_pc[requests.pc] = _plain(requests.operation)
        pcs = np.flatnonzero(operation_of_pc >= 0)
        rank = np.cumsum(operation_of_pc >= 0) - 1
        key = requests.of_blocks(np.arange(blocks) * movers * len(pcs)) + requests.mover * len(pcs) + rank[requests.pc]
        asked = np.bincount(key, minlength=self.lists * len(pcs))
        found = np.flatnonzero(asked)
        group = (np.cumsum(asked > 0) - 1)[key]
        self._chosen, self._ends = _in_groups(group, len(found), requests, coalesced, grain)
        start = low >> _BITS_SHIFT << _BITS_SHIFT
        words = max(0, high - start >> _BITS_SHIFT) + 1
        self._bits = _Bits(np.zeros(words, np.uint64), np.zeros((words >> _BITS_SHIFT) + 1, np.uint64), start)
        entries, apart = np.zeros(len(found), np.int64), np.zeros(len(UNITS), np.uint64)
        for number in range(len(found)):
            self._mark(number)
            entries[number] = _measure(self._bits, apart)
        pc = pcs[found % max(len(pcs), 1)]
        self.groups = Groups(found // max(len(pcs), 1), pc, operation_of_pc[pc], entries)
        self.low, self.high = low, high
        self.unit = next((UNITS[-1 - n] >> 1 for n, differ in enumerate(apart.tolist()) if differ), UNITS[0])

    def _mark(self, group: int) -> None:
        """Add the entries of a group to the bitmap."""
        requests, these = self._requests, slice(self._ends[group - 1] if group else 0, self._ends[group])
        columns = requests.base_sector, requests.shape, requests.times, requests.step
        _mark(self._chosen[these], *columns, self._coalesced, self._grain, self._bits)

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
        chosen = np.where(together, units, -(-(before + units) // every) - -(-before // every))
        parts: list[NDArray[np.int64]] = []
        for group in range(len(groups.list)):
            self._mark(group)
            parts.append(np.empty(int(chosen[group]), np.int64))
            _collect(self._bits, unit, 1 if together[group] else every, int(before[group]), parts[-1])
        for number in np.unique(groups.list[together]).tolist():
            those = np.flatnonzero(together & (groups.list == number)).tolist()
            kept = np.empty(-(-int(units[those].sum()) // every), np.int64)
            for group in those:
                self._mark(group)
            kept = kept[: _collect(self._bits, unit, every, 0, kept)]
            for group in those:
                parts[group] = parts[group][np.isin(parts[group], kept)]
        sector, count = np.concatenate([*parts, np.zeros(0, np.int64)]), np.array([len(part) for part in parts], int)
        number, pc, operation = (np.repeat(column, count) for column in (groups.list, groups.pc, groups.operation))
        order = order_by(number, sector)
        start = np.searchsorted(number, np.arange(self.lists + 1))
        return Sectors(start, sector[order] - low, pc[order], operation[order])


def _in_groups(
    group: NDArray[np.int64], groups: int, requests: L1Requests, coalesced: Coalesced, grain: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return requests in the order of their groups and how many sectors are in a row of each, int64 [requests, 2]; and
    where each group ends.

    A request touches rows of sectors that follow one another; where these are not equally long 0 is returned. Of those
    that move, in iterations that were left out, one whose rows begin where those of another one end becomes part of it:
    there may be hundreds of millions of sectors to mark, and together they are long rows of an array.
    """
    # Small numbers are sorted several times as fast.
    order = np.argsort(group.astype(np.uint16) if groups < 1 << 16 else group, kind="stable")
    width = np.zeros(len(coalesced.sectors), np.int64)
    for shape in np.unique(requests.shape).tolist():
        offset = coalesced.sector_offset[coalesced.sector_start[shape] : coalesced.sector_start[shape + 1]]
        rows = np.diff(np.flatnonzero(np.diff(offset, prepend=offset[0] - 2, append=offset[-1] + 2) != 1))
        width[shape] = rows[0] if (rows == rows[0]).all() else 0
    wide = width[requests.shape]
    moves = np.flatnonzero(requests.step)
    if len(moves):
        columns = [c[moves] for c in (group, requests.shape, requests.step, requests.times, requests.base_sector)]
        moves = moves[np.lexsort(columns[::-1])]
        *alike, base = (c[moves] for c in (group, requests.shape, requests.step, requests.times, requests.base_sector))
        begins = new_rows(*alike) | (np.diff(base, prepend=base[0]) != wide[moves])
        first = np.flatnonzero(begins)
        wide[moves[first]] *= np.diff(first, append=len(moves))
        stays = np.ones(len(group), np.bool_)
        stays[moves] = begins
        order = order[stays[order]]
    return np.stack([order, wide[order]], axis=1), np.cumsum(np.bincount(group[order], minlength=groups))


def _plain(operation: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return operations as L2 knows them: it does not matter whether they go past L1."""
    operation = np.where(operation == READ_PAST_L1, np.uint8(READ), operation)
    return np.where(operation == WRITE_PAST_L1, np.uint8(WRITE), operation)
