"""Estimates the work of L2 and DRAM where not every block was executed, from what each wave of blocks touches.

The sectors that the executed blocks accessed, moved by what their relation to the other blocks says, are those of every
block. Blocks run in waves (all that are resident at once), and L2 is taken to be LRU with a wave as the unit of
time. Within a wave a sector is fetched once. A sector that an earlier wave touched is still there if the distinct
sectors touched since then fit in L2.

Where L2 has two partitions, what SMs of both halves read or write is in it twice (see `l2`). This reduces the capacity.
As there, a part of it may be dirty, and what is to be evicted first has the room that nothing else takes.

Sectors that are only ever touched together are treated as one. Where the work is still too much, every m-th sector of a
block stands for m, and of fewer than m the first for all; the capacity shrinks as the number of sectors does. Blocks
that share sectors share the chosen ones too, because they make the same requests. So do instructions of a block that
store. Of those that read each has its own.

Not modelled: what L1 keeps from one wave to the next; associativity; and a wave whose own sectors are more than L2
holds (its blocks are taken to move in step, so that what they share is still there when the last of them asks for it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L2
from gemmsim.memory.grid.bitmap import Groups
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.sector_lists import Sectors
from gemmsim.memory.grid.touched import UNITS, Touched, touched, whole_lines
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.cache_operations import READ, WRITE
from gemmsim.memory.requests.coalescer import SECTOR_BYTES, SECTORS_PER_LINE, Coalesced
from gemmsim.support.sorting import counted, order_by
from gemmsim.trace.types import Relation

_MAX_VISITS = 40_000_000  # visits of sectors, which take about half a second
_MOST_UNIT = max(UNITS)
# Sectors: 32 GiB of addresses. A bit for each sector, and 4 bytes for each 64, are 200 MB; all else that is known has
# entries only for sectors that are visited.
_MAX_RANGE = 1 << 30
_WORD_SECTORS = 64  # sectors that have their bits in one word
_visit_waves, _number_visited = (
    native_loop("grid/footprint_loop", function, "grid/bit_words", "requests/cache_operations")
    for function in ("visit_waves", "number_visited")
)


@dataclass(frozen=True)
class Footprint:
    """What DRAM reads and writes for L2 in the whole launch.

    read_sectors     float64 [instructions] sectors that DRAM reads for each instruction
    new_share        float64 [instructions] the share of the sectors that a wave touches that DRAM reads for that wave
    written_sectors  dirty sectors that are written back to DRAM during the launch
    stack_sectors    those of them that are of local memory
    """

    read_sectors: NDArray[np.float64]
    new_share: NDArray[np.float64]
    written_sectors: float
    stack_sectors: float = 0.0


@dataclass(frozen=True)
class Visits:
    """Which lists of `Sectors` the blocks of each wave touch, and where, in the order of waves; int64 [visits].

    wave    wave in which the list is visited, ascending
    list    number of the list
    offset  sectors by which the addresses of the list are moved
    blocks  how many blocks of the wave visit this list with this offset
    """

    wave: NDArray[np.int64]
    list: NDArray[np.int64]
    offset: NDArray[np.int64]
    blocks: NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """What is known of the sectors while the waves of blocks are followed.

    Sectors lie at their place in `last`, or at their number among those that are visited.

    held        int64 [launches * waves + 1]: how many sectors each wave was the last to touch
    held_first  the same of those that are evicted first, which `held` does not count
    held_dirty  of all of them, how many are dirty
    last        int16 or int32 [sectors]: for each sector, four times the number of the wave that touched it last
                (counted from 1), 2 more if it is evicted first, and 1 more if it is dirty
    words       uint64 [sectors / 64]: a bit for each sector that is visited; empty where sectors are not numbered
    before      int32 [sectors / 64]: how many of these come before each word
    """

    held: NDArray[np.int64]
    held_first: NDArray[np.int64]
    held_dirty: NDArray[np.int64]
    last: NDArray
    words: NDArray[np.uint64]
    before: NDArray[np.int32]


@dataclass(frozen=True)
class Wave:
    """What the estimate must know of the GPU.

    blocks  blocks that are resident on it at once
    l2      its L2
    warm    whether an identical launch, which is not counted, runs just before
    """

    blocks: int
    l2: L2
    warm: bool


def estimate(
    relation: Relation,
    requests: L1Requests,
    coalesced: Coalesced,
    instructions: int,
    wave: Wave,
) -> Footprint | None:
    """Estimate the footprint of a launch; None where the addresses lie too far apart.

    requests      the requests of the executed blocks
    instructions  how many static instructions the program has
    """
    offsets = relation.offset_bytes.T // SECTOR_BYTES
    apart = np.ptp(requests.base_sector) if len(requests.base_sector) else 0
    if apart - SECTORS_PER_LINE + np.ptp(offsets) > _MAX_RANGE:
        return None
    of_lines = whole_lines(requests, coalesced) and not (offsets % SECTORS_PER_LINE).any()
    of_lines = of_lines and not (requests.step % SECTORS_PER_LINE).any()
    grain = SECTORS_PER_LINE if of_lines else 1  # sectors that an entry of the lists stands for
    offsets //= grain
    lists = touched(requests, coalesced, len(relation.offset_bytes), grain, _MAX_RANGE // grain)
    if lists is None:
        return None
    if not len(lists.groups.list):
        return Footprint(np.zeros(instructions), np.zeros(instructions), 0.0)
    used = np.bincount(lists.groups.list, lists.groups.entries, lists.lists) > 0
    visits = _visits(relation.like, offsets, np.arange(len(relation.like)) // wave.blocks, used)
    if (lists.high + int(offsets.max()) + 1 - lists.low - int(offsets.min())) * grain > _MAX_RANGE:
        return None
    evict_first = np.zeros(instructions, np.bool_)
    evict_first[requests.pc[requests.evict_first]] = True
    return _follow(lists, visits, wave.l2, evict_first, 2 if wave.warm else 1, grain)


def _follow(
    lists: Touched, visits: Visits, l2: L2, evict_first: NDArray[np.bool_], launches: int, grain: int
) -> Footprint:
    """Follow the waves of `launches` identical launches through L2, and count what DRAM does for the last launch.

    evict_first  bool [instructions] whether L2 is told to replace first what each accesses
    grain        sectors that an entry of the lists stands for
    """
    instructions = len(evict_first)
    unit = min(lists.unit, _MOST_UNIT // grain)
    while (visits.offset % unit).any():
        unit //= 2
    capacity_sectors = l2.size_bytes / SECTOR_BYTES / grain
    visits = Visits(visits.wave, visits.list, visits.offset // unit, visits.blocks)
    low = lists.low // unit + int(visits.offset.min())
    units = lists.high // unit + int(visits.offset.max()) + 1 - low
    groups, visited = lists.groups, np.bincount(visits.list, minlength=lists.lists)
    every = -(-int(visited[groups.list] @ (groups.entries // unit)) // _MAX_VISITS) or 1
    chosen = lists.every(unit, every, low)
    lists.forget()
    whole = np.bincount(groups.pc, visited[groups.list] * (groups.entries // unit), instructions).astype(np.float64)
    part = np.zeros(instructions)
    for times, begin, end in zip(visited.tolist(), chosen.start[:-1].tolist(), chosen.start[1:].tolist(), strict=True):
        part += times * np.bincount(chosen.pc[begin:end], minlength=instructions)
    chosen_units = capacity_sectors / unit * part.sum() / whole.sum()
    copies = _copies_per_line(visits, groups, l2.partitions, evict_first)
    shares = np.array([1.0, l2.dirty_share * copies, l2.evict_first_share])
    capacity = (chosen_units / copies * shares).astype(np.int64)
    read, touches = np.zeros((2, instructions), np.int64)
    known = _known(chosen, visits, units, launches * (int(visits.wave[-1]) + 1) + 1)
    written = _visit_waves(chosen, visits, launches, capacity, evict_first, known, read, touches)
    # A list of fewer than `every` entries keeps one, so what a chosen entry stands for differs from list to list.
    entries, writes = whole / np.maximum(part, 1), np.unique(groups.pc[groups.operation != READ])
    written_entries = written * float(whole[writes].sum() / max(part[writes].sum(), 1.0))
    sectors = float(unit * grain)
    return Footprint(read * entries * sectors, read / np.maximum(touches, 1), written_entries * sectors)


def _known(lists: Sectors, visits: Visits, sectors: int, waves: int) -> Known:
    """Return what is known before the first wave, with no more memory than for sectors that are visited.

    sectors  between the first and the last one, which are at 0 and sectors - 1
    """
    words, before = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    if int(np.bincount(visits.list, minlength=len(lists.start) - 1) @ np.diff(lists.start)) < sectors:
        length = -(-sectors // _WORD_SECTORS)
        words, before = np.zeros(length, np.uint64), np.zeros(length, np.int32)
        sectors = _number_visited(lists, visits, words, before)
    last = np.zeros(sectors, np.int16 if 4 * waves + 3 <= np.iinfo(np.int16).max else np.int32)
    held, held_first, held_dirty = np.zeros((3, waves), np.int64)
    return Known(held, held_first, held_dirty, last, words, before)


def _visits(
    like: NDArray[np.int64], offsets: NDArray[np.int64], wave: NDArray[np.int64], used: NDArray[np.bool_]
) -> Visits:
    """Return the visits of each wave, without repeats: blocks of one wave that touch the same sectors find them in L2.

    like     int64 [blocks] executed block that each block is like
    offsets  int64 [blocks, movers] sectors from the addresses of that block to those of each block
    wave     int64 [blocks] wave of each block
    used     bool [executed blocks * movers] whether each list has anything in it
    """
    movers = offsets.shape[1]
    used = used.reshape(-1, movers)
    columns = []
    for m in np.flatnonzero(used.any(axis=0)).tolist():
        some = slice(None) if used[:, m].all() else np.flatnonzero(used[like, m])
        moved = offsets[some, m]
        each = max(1, int(np.gcd.reduce(moved)))  # small numbers are sorted faster
        (first, number, place), blocks = counted(wave[some], like[some], moved // each)
        columns.append((first, number * movers + m, place * each, blocks))
    wave, number, offset, blocks = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    order = order_by(wave)
    return Visits(wave[order], number[order], offset[order], blocks[order])


def _copies_per_line(visits: Visits, groups: Groups, partitions: int, evict_first: NDArray[np.bool_]) -> float:
    """Return how many lines of L2 a line takes, on average.

    It takes one in the partition that it belongs to, and one in each other partition whose SMs read or write it. Each
    of the blocks that do may be near to any of the partitions. Atomics, and stores of what is replaced first, leave no
    copies.
    """
    if partitions == 1:
        return 1.0
    others = (partitions - 1) * (1 - (1 - 1 / partitions) ** visits.blocks.astype(np.float64))
    lists = int(visits.list.max()) + 1
    copied = (groups.operation == READ) | ((groups.operation == WRITE) & ~evict_first[groups.pc])
    copies, touches = (
        np.bincount(groups.list, n, lists)[visits.list] for n in (groups.entries * copied, groups.entries)
    )
    return 1 + float(copies @ others) / max(int(touches.sum()), 1)
