"""Finds where in memory blocks of the grid begin to work, which tells which of them want the same data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.trace.types import WarpTrace, active_lanes


def block_places(trace: WarpTrace, requests: L1Requests, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lowest address of the first request of each instruction: int64 [blocks, instructions].

    requests  the requests of the whole trace
    blocks    linear ids of blocks of the grid

    It is 0 for an instruction that a block does not execute.
    """
    first = _first_places(trace, requests)
    if trace.relation is None:
        return first.address[np.argsort(trace.blocks)[blocks]]
    like = trace.relation.like[blocks]
    offsets = trace.relation.offset_bytes[:, blocks]
    places = first.address[like]
    moved = offsets[first.mover[like], np.arange(len(like))[:, None]]
    return np.where(places != 0, places + moved, 0)


class _First:
    """The first request of each executed block and instruction.

    address, mover  int64 [executed blocks, instructions]; 0 where there is no request
    """

    def __init__(self, address: NDArray[np.int64], mover: NDArray[np.int64]) -> None:
        self.address, self.mover = address, mover


def _first_places(trace: WarpTrace, requests: L1Requests) -> _First:
    instructions, blocks = trace.executed.shape[1], len(trace.blocks)
    number = requests.of_blocks(np.arange(blocks)) * instructions + requests.pc
    first = np.full(blocks * instructions, len(number))
    np.minimum.at(first, number, np.arange(len(number)))  # far quicker than to sort millions of them
    found = np.flatnonzero(first < len(number))
    first = first[found]
    top = np.iinfo(np.int64).max
    active = active_lanes(trace.patterns.active_mask)
    lowest = np.where(active, trace.patterns.offsets_bytes, top).min(axis=1, initial=top)
    record = requests.record[first]
    address, mover = np.zeros((2, blocks * instructions), np.int64)
    address[found] = trace.record_base[record].astype(np.int64) + lowest[trace.record_pattern[record]]
    mover[found] = requests.mover[first]
    return _First(address.reshape(blocks, instructions), mover.reshape(blocks, instructions))
