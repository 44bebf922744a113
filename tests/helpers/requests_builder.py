"""Builds requests to L1, and the shapes of their accesses."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE
from gemmsim.memory.requests.coalescer import Coalesced


def coalesced_of(offsets: list[list[int]]) -> Coalesced:
    """Shapes that touch sectors at these offsets from their base."""
    count = np.array([len(sectors) for sectors in offsets])
    start, nothing = np.concatenate([[0], np.cumsum(count)]), np.zeros(len(offsets), np.int64)
    every = np.concatenate(offsets).astype(np.int64)
    return Coalesced(count, count, count, nothing, count, start, every, np.ones(len(every), bool))


def requests_of(
    base: np.ndarray, shape: np.ndarray, mover: np.ndarray, pc_of_shape: np.ndarray, warps: int, of_warps: int
) -> L1Requests:
    pc = pc_of_shape[shape].astype(np.int32)
    operation = np.array([READ, READ_PAST_L1, WRITE], np.uint8)[pc % 3]
    start = np.linspace(0, len(base), warps + 1).astype(np.int64)
    last_use = np.zeros(len(base), bool)
    numbers = np.arange(len(base))
    return L1Requests(
        *(numbers, base, shape.astype(np.int32), operation, pc, last_use, mover.astype(np.int32), start, of_warps)
    )
