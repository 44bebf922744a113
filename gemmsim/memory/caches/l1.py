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
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.residents import ResidentGroups
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.coalescer import LINE_BYTES, Coalesced

_replay = native_loop("caches/l1_loop", "replay", "caches/lru", "requests/cache_operations")


@dataclass(frozen=True)
class L2Requests:
    """What the L1 caches ask of L2, one entry a line, in each SM's order.

    line    int64 [events] address over 128
    mask    uint8 [events] bit s: sector s of the line
    kind    uint8 [events] READ, WRITE or ATOMIC
    access  int64 [events] index into the requests
    start   int64 [SMs in use + 1] events of the i-th SM are start[i]:start[i + 1]
    """

    line: NDArray[np.int64]
    mask: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    access: NDArray[np.int64]
    start: NDArray[np.int64]


@dataclass(frozen=True)
class L1Replay:
    """hits, l2_requests: int64 [accesses] sectors that hit, and lines asked of L2, summed over the members that make
    the access, each as often as it counts; to_l2: what they ask, once each."""

    hits: NDArray[np.int64]
    l2_requests: NDArray[np.int64]
    to_l2: L2Requests


def replay_l1(
    requests: L1Requests,
    residents: ResidentGroups,
    coalesced: Coalesced,
    warps_per_block: int,
    l1_bytes: int,
    ways: int,
) -> L1Replay:
    """Run all accesses through the L1s of their SMs, cold at the start. An L1 of 0 bytes holds nothing."""
    sets = max(1, l1_bytes // (LINE_BYTES * ways))
    ways = ways if l1_bytes >= LINE_BYTES * ways else l1_bytes // LINE_BYTES
    shape = (sets, max(1, ways))
    sectors = np.add.reduceat(np.append(coalesced.sectors[requests.shape], 0), requests.start[:-1:warps_per_block])
    sectors[np.diff(requests.start[::warps_per_block]) == 0] = 0  # reduceat gives an empty block the next one's first
    events = int(sectors[residents.block[residents.times > 0]].sum())  # room: pages that stay untouched cost nothing
    line = np.empty(events, np.int64)
    mask = np.empty(events, np.uint8)
    kind = np.empty(events, np.uint8)
    access = np.empty(events, np.int64)
    counted = np.zeros((len(requests.sector), 2), np.int64)
    start = np.zeros(np.count_nonzero(np.diff(residents.sm, prepend=-1)) + 1, np.int64)
    of_shape = np.zeros((2, len(coalesced.sector_start) - 1), np.int64)
    of_shape[0, requests.shape], of_shape[1, requests.shape] = requests.kind, requests.pc
    parts = 4 * len(coalesced.sector_offset)
    _replay(
        requests.sector, requests.shape, of_shape[0], of_shape[1], requests.start,
        coalesced.sector_start, coalesced.sector_offset, coalesced.sector_whole,
        residents.sm, residents.start, residents.block, residents.moved, residents.times, residents.phase,
        residents.shift, warps_per_block, np.full(shape, -1, np.int64), ways > 0,
        np.zeros(4 * len(of_shape[0]) + 1, np.int64), *np.zeros((3, parts), np.int64),
        counted, line, mask, kind, access, start,
    )  # fmt: skip
    count = int(start[-1])
    hits, l2_requests = np.ascontiguousarray(counted.T)
    return L1Replay(hits, l2_requests, L2Requests(line[:count], mask[:count], kind[:count], access[:count], start))
