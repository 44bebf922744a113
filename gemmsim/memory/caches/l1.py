"""The L1 caches: which sectors of each request hit, and what goes on to L2.

Each SM has an L1 of 128-byte lines of four 32-byte sectors; `l1_cache` says which lines it keeps. A load allocates its
lines and fetches only the sectors that are missing. A sector whose fetch is under way counts as a hit, as Nsight
Compute's lookup_hit does (an H200 counted 8,326,219 missing and 8,296,410 arriving sectors for one kernel: each missed
once).

A store is written through to L2 and allocates its lines too. It hits where the line is there, whichever of its sectors
are valid; those that it covers as a whole are valid afterwards. (Own microbenchmarks on an H200: lines stored once are
hits for later stores and loads, up to the capacity of L1 and 20,000 cycles later; in the kernels of kernels/, of two
stores of half a line each the second counts as a hit. On a T4 the tiled 4096 GEMM that reads C before it writes it
shows a hit rate of 0.39 %, its stores' share of all sectors.) A load of a sector that was written in part is taken to
miss.

Accesses to local memory are loads and stores like others: each store goes to L2, too. A load that says "last use"
(LDL.LU, by which compilers fill spilled registers) finds what L1 has, does not make its line younger, and allocates
none. (Own microbenchmark on an H200, tests/records/h200_local_memory.json: one machine code with LDL and with LDL.LU.)

Atomics, and copies to shared memory that bypass L1 (cp.async.cg), go past L1 to L2 and never hit.

Not modelled: stores to a line within some tens of cycles of the store that allocates it, which may miss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.caches.l1_cache import L1Cache
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.residents import Residents
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.cache_operations import LAST_READ
from gemmsim.memory.requests.coalescer import Coalesced

_replay = native_loop("caches/l1_loop", "replay", "caches/l1_cache_loop", "caches/lru", "requests/cache_operations")


@dataclass(frozen=True)
class L2Requests:
    """What the L1 caches ask of L2: one entry for each line of a request, SM by SM, in the order in which each SM asks.

    line       int64 [entries] number of the line: address / 128
    sectors    uint8 [entries] bit s is set for sector s of the line
    operation  uint8 [entries] READ, WRITE or ATOMIC
    request    int64 [entries] index of the L1 request that asks
    start      int64 [SMs in use + 1] the i-th SM has the entries start[i]:start[i + 1]
    """

    line: NDArray[np.int64]
    sectors: NDArray[np.uint8]
    operation: NDArray[np.uint8]
    request: NDArray[np.int64]
    start: NDArray[np.int64]


@dataclass(frozen=True)
class ShapeLines:
    """The lines that a request of each shape looks up.

    The base of a request lies in one of four sectors of its line, which decides how the request's sectors fall into
    lines. So there are four lists of lines for each shape: list 4 * shape + b is for a base in sector b.

    operation  int64 [shapes] operation of each shape. The replay reads it here and not by request, because the small
               array stays in this machine's caches.
    listed     bool [shapes] whether it is wanted what requests of each shape ask of L2
    start      int64 [4 * shapes + 1] list i has the lines start[i]:start[i + 1] of the following arrays
    line       int64 [4 * sectors of all shapes] number of the line, counted from that of the base
    sectors    int64 [4 * sectors of all shapes] sectors of the line that are asked for, as bits
    whole      int64 [4 * sectors of all shapes] sectors of the line of which every byte is asked for, as bits
    """

    operation: NDArray[np.int64]
    listed: NDArray[np.bool_]
    start: NDArray[np.int64]
    line: NDArray[np.int64]
    sectors: NDArray[np.int64]
    whole: NDArray[np.int64]


@dataclass(frozen=True)
class L1Replay:
    """What the L1 caches did with each request.

    Several members of `Residents`, each of which stands for `times` equal ones, may make the same request. Then
    `hits` and `l2_requests` are sums over these members, weighted by their `times`.

    hits         int64 [requests] sectors that hit
    l2_requests  int64 [requests] lines asked of L2
    to_l2        the lines asked of L2, once for each member whose `times` is not 0
    """

    hits: NDArray[np.int64]
    l2_requests: NDArray[np.int64]
    to_l2: L2Requests


def replay_l1(
    requests: L1Requests,
    residents: Residents,
    coalesced: Coalesced,
    cache: L1Cache,
    listed: NDArray[np.bool_] | None = None,
) -> L1Replay:
    """Run all requests through the L1s of their SMs, which are empty at the start.

    residents  which blocks run on which SM, and when
    cache      the L1 of an SM, used for one SM after another
    listed     bool [shapes] of which shapes requests are that `L1Replay.to_l2` is to have; None: of any
    """
    warps = requests.warps_per_block
    shapes, parts = len(coalesced.sectors), 4 * len(coalesced.sector_offset)
    listed = np.ones(shapes, np.bool_) if listed is None else listed
    most = np.where(listed, coalesced.sectors, 0)[requests.shape]
    sectors = np.add.reduceat(np.append(most, 0), requests.start[:-1:warps])
    sectors[np.diff(requests.start[::warps]) == 0] = 0  # reduceat gives an empty block the next one's first
    # Room for the most that may be asked of L2; pages that stay untouched cost nothing.
    room = int(sectors[residents.block[residents.times > 0]].sum())
    to_l2 = L2Requests(
        line=np.empty(room, np.int64),
        sectors=np.empty(room, np.uint8),
        operation=np.empty(room, np.uint8),
        request=np.empty(room, np.int64),
        start=np.zeros(len(residents.sm) + 1, np.int64),
    )
    operation = np.zeros(shapes, np.int64)
    operation[requests.shape] = np.where(requests.last_use, LAST_READ, requests.operation)
    lines = ShapeLines(operation, listed, np.zeros(4 * shapes + 1, np.int64), *np.zeros((3, parts), np.int64))
    places = np.zeros((int(np.diff(residents.first_place).max(initial=0)), 3), np.int64)
    counted = np.zeros((len(requests.pc), 2), np.int64)
    _replay(requests, residents, coalesced, lines, cache, places, counted, to_l2)
    asked = slice(int(to_l2.start[-1]))
    hits, l2_requests = np.ascontiguousarray(counted.T)
    arrays = (to_l2.line[asked], to_l2.sectors[asked], to_l2.operation[asked], to_l2.request[asked])
    return L1Replay(hits, l2_requests, L2Requests(*arrays, to_l2.start))
