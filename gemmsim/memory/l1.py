"""The L1 caches: which sectors of each access hit, and what goes on to L2.

Per SM; 128-byte lines of four 32-byte sectors, LRU. A load allocates its lines and fetches only the sectors that are
missing; a sector whose fetch is under way counts as a hit, as Nsight Compute's lookup_hit does (an H200 counted
8,326,219 missing and 8,296,410 arriving sectors for one kernel: each missed once).

A store is written through to L2 and allocates its lines too. It hits where the line is there, whichever of its sectors
are valid; those that it covers as a whole are valid afterwards. (Own microbenchmarks on an H200: lines stored once are
hits for later stores and loads, up to the capacity of L1 and 20,000 cycles later; in the ladder, of two stores of half
a line each the second counts as a hit. On a T4 the tiled 4096 GEMM that reads C before it writes it shows
a hit rate of 0.39 %, its stores' share of all sectors.) A load of a sector written in part is taken to miss.

Atomics, and copies to shared memory that bypass L1 (cp.async.cg), pass by to L2 and never hit.

Not modelled: stores to a line within some tens of cycles of the store that allocates it, which may miss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gemmsim.memory.coalescer import LINE_BYTES, Coalesced
from gemmsim.memory.lru import move_to_front, sectors_in, set_of, way_of
from gemmsim.memory.streams import PAST, READ, WRITE, Residents, Streams


@dataclass(frozen=True)
class ToL2:
    """What the L1 caches ask of L2, one entry a line, in each SM's order.

    line    int64 [events] address over 128
    mask    uint8 [events] bit s: sector s of the line
    kind    uint8 [events] READ, WRITE or ATOMIC
    access  int64 [events] index into the streams
    start   int64 [SMs in use + 1] events of the i-th SM are start[i]:start[i + 1]
    """

    line: NDArray[np.int64]
    mask: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    access: NDArray[np.int64]
    start: NDArray[np.int64]


@dataclass(frozen=True)
class L1Replay:
    """hits, requests: int64 [accesses] sectors that hit, and lines asked of L2, summed over the members that make the
    access, each as often as it counts; to_l2: what they ask, once each."""

    hits: NDArray[np.int64]
    requests: NDArray[np.int64]
    to_l2: ToL2


def replay_l1(
    streams: Streams, residents: Residents, coalesced: Coalesced, warps_per_block: int, l1_bytes: int, ways: int
) -> L1Replay:
    """Run all accesses through the L1s of their SMs, cold at the start. An L1 of 0 bytes holds nothing."""
    sets = max(1, l1_bytes // (LINE_BYTES * ways))
    ways = ways if l1_bytes >= LINE_BYTES * ways else l1_bytes // LINE_BYTES
    shape = (sets, max(1, ways))
    sectors = np.add.reduceat(np.append(coalesced.sectors[streams.shape], 0), streams.start[:-1:warps_per_block])
    sectors[np.diff(streams.start[::warps_per_block]) == 0] = 0  # reduceat gives an empty block the next one's first
    events = int(sectors[residents.block[residents.times > 0]].sum())  # room: pages that stay untouched cost nothing
    line = np.empty(events, np.int64)
    mask = np.empty(events, np.uint8)
    kind = np.empty(events, np.uint8)
    access = np.empty(events, np.int64)
    hits, requests = np.zeros((2, len(streams.sector)), np.int64)
    start = np.zeros(len(np.unique(residents.sm)) + 1, np.int64)
    _replay(
        streams.sector, streams.shape, streams.kind, streams.pc, streams.start,
        coalesced.sector_start, coalesced.sector_offset, coalesced.sector_whole,
        residents.sm, residents.start, residents.block, residents.moved, residents.times, residents.phase,
        residents.shift,
        warps_per_block, np.full(shape, -1, np.int64), np.zeros(shape, np.uint8), ways > 0,
        hits, requests, line, mask, kind, access, start,
    )  # fmt: skip
    count = int(start[-1])
    return L1Replay(hits, requests, ToL2(line[:count], mask[:count], kind[:count], access[:count], start))


@njit(cache=True)
def _replay(  # type: ignore[no-untyped-def]
    sector, shape, kind, pc, warp_start, sector_start, sector_offset, sector_whole,
    group_sm, group_start, group_block, moved, times, phase, shift, warps, tags, valid, caches,
    hits, requests, out_line, out_mask, out_kind, out_access, out_start,
):  # fmt: skip
    count = 0
    used = 0
    for group in range(len(group_sm)):
        if group and group_sm[group] != group_sm[group - 1]:
            used += 1
            tags[:] = -1
        first, last = group_start[group], group_start[group + 1]
        longest = 0
        for member in range(first, last):
            for warp in range(group_block[member] * warps, (group_block[member] + 1) * warps):
                longest = max(longest, warp_start[warp + 1] - warp_start[warp])
        for turn in range(longest):
            for member in range(first, last):
                for warp in range(group_block[member] * warps, (group_block[member] + 1) * warps):
                    length = warp_start[warp + 1] - warp_start[warp]
                    if turn >= length:
                        continue
                    i = turn + int(phase[member] * length)
                    i += warp_start[warp] - (length if i >= length else 0)
                    base = sector[i] + shift[moved[member], pc[i]]
                    j, end = sector_start[shape[i]], sector_start[shape[i] + 1]
                    while j < end:
                        line = (base + sector_offset[j]) >> 2
                        wanted, whole = np.uint8(0), np.uint8(0)
                        while j < end and (base + sector_offset[j]) >> 2 == line:
                            bit = np.uint8(1 << ((base + sector_offset[j]) & 3))
                            wanted |= bit
                            if sector_whole[j]:
                                whole |= bit
                            j += 1
                        found = _look_up(tags, valid, caches, line, wanted, whole, kind[i])
                        if not times[member]:
                            continue
                        hits[i] += times[member] * sectors_in(found)
                        rest = wanted & ~found if kind[i] == READ else wanted
                        if rest:
                            requests[i] += times[member]
                            out_line[count] = line
                            out_mask[count] = rest
                            out_kind[count] = READ if kind[i] == PAST else kind[i]
                            out_access[count] = i
                            count += 1
        out_start[used + 1] = count


@njit(cache=True, inline="always")
def _look_up(tags, valid, caches, line, wanted, whole, kind):  # type: ignore[no-untyped-def]
    """Sectors of `wanted` that hit. A read leaves all of them valid, a write those of `whole`."""
    if not caches or kind > WRITE:
        return np.uint8(0)
    row = set_of(line, len(tags))
    way = way_of(tags, row, line)
    present = valid[row, way] if way >= 0 else np.uint8(0)
    found = wanted & (present if kind == READ else np.uint8(15 if way >= 0 else 0))
    way = way if way >= 0 else tags.shape[1] - 1
    move_to_front(tags, row, way, line)
    move_to_front(valid, row, way, present | (wanted if kind == READ else whole))
    return found
