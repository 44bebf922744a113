"""Builds requests to L1, and the shapes of their accesses."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.caches.l1 import replay_l1
from gemmsim.memory.caches.l1_cache import L1Cache
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.residents import Residents
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE
from gemmsim.memory.requests.coalescer import Coalesced


def coalesced_of(offsets: list[list[int]]) -> Coalesced:
    """Shapes that touch sectors at these offsets from their base."""
    count = np.array([len(sectors) for sectors in offsets])
    start, nothing = np.concatenate([[0], np.cumsum(count)]), np.zeros(len(offsets), np.int64)
    every = np.concatenate(offsets).astype(np.int64)
    return Coalesced(count, count, count, nothing, count, start, every, np.ones(len(every), bool))


SECTORS = [[0, 1, 2, 3], [0], [1], [0, 1, 2, 3], [0], [0]]  # of what one warp does with a line, 0 to 5


def replayed(order: np.ndarray, cache: L1Cache) -> np.ndarray:
    """Whether each access of one warp finds all that it asks for: line * 8 + what is done with it. 0 is a load of the
    line, 1 and 2 of its first and second sector, 3 a store of the line, 4 of its first sector, 5 of half of that."""
    nothing, one = np.zeros(1, np.int64), np.array([0, 1])
    requests = requests_of(order // 8 * 4, order % 8, np.zeros(len(order), np.int64), np.arange(6), 1, 1)
    requests.operation[:] = np.array([READ, READ, READ, WRITE, WRITE, WRITE])[order % 8]
    coalesced = coalesced_of(SECTORS)
    coalesced.sector_whole[-1] = False
    residents = Residents(nothing, one, one, nothing, nothing, nothing + 1, np.zeros(1), nothing[:, None])
    return replay_l1(requests, residents, coalesced, cache).hits == coalesced.sectors[order % 8]


def requests_of(
    base: np.ndarray, shape: np.ndarray, mover: np.ndarray, pc_of_shape: np.ndarray, warps: int, of_warps: int
) -> L1Requests:
    pc = pc_of_shape[shape].astype(np.int32)
    operation = np.array([READ, READ_PAST_L1, WRITE], np.uint8)[pc % 3]
    start = np.linspace(0, len(base), warps + 1).astype(np.int64)
    no = np.zeros(len(base), bool)
    numbers = np.arange(len(base))
    return L1Requests(
        *(numbers, base, shape.astype(np.int32), operation, pc, no, no, mover.astype(np.int32), start, of_warps)
    )
