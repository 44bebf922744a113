"""Finds which blocks share an SM, and when: the order in which the cache replays follow the requests of a grid.

`placement` says on which SM and in which generation each block runs. An SM has as many places as blocks are resident
together. At each place blocks run one after another, while the places take turns: the warps of a block make one request
each, then those of the block at the next place do. On hardware warps drift apart, so hits between blocks that share
data by chance differ there.

Blocks of the first generation begin together. A block of the second one begins when its place is due: the places of an
SM are spread evenly over the time that a block takes, in the order of the blocks' numbers. An H200 does so from the
second or third generation on where what blocks take is left to chance, as for rows that are read from memory and for
tiles of 8 and 16; those of 32, two an SM, are half a block apart (tests/records/h200_generations.json). Blocks that all
take the same time, as those of large thread tiles do, stay together there, and those of naive for some ten generations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.support.sorting import new_rows


@dataclass(frozen=True)
class Residents:
    """Blocks at the places of SMs, the members: those of a place run one after another.

    sm            int64 [L1s] SM of each L1, which is empty in the beginning
    first_place   int64 [L1s + 1] L1 i serves the places first_place[i]:first_place[i + 1]
    start         int64 [places + 1] place p has the members start[p]:start[p + 1]
    block         int64 [members] index into the trace's blocks: the member makes the requests of this block
    offset_row    int64 [members] index of the row of `offset_sectors` that moves the member's addresses
    times         int64 [members] how many equal members this one stands for: its hits and misses count so often, or
                  not at all if 0. A replay ends when all members that count have
    wait          float64 [members] how long its place is empty before the member begins, as a share of its own turns
    offset_sectors  int64 [rows, movers] sectors that are added to the addresses of requests, by `L1Requests.mover`
    """

    sm: NDArray[np.int64]
    first_place: NDArray[np.int64]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    offset_row: NDArray[np.int64]
    times: NDArray[np.int64]
    wait: NDArray[np.float64]
    offset_sectors: NDArray[np.int64]


def residents_of_grid(blocks: NDArray[np.int64], placement: Placement) -> Residents:
    """Return where the blocks of a grid run that were all executed; `blocks` are the linear ids of the trace's."""
    sm, generation = placement.sm[blocks], placement.generation[blocks]
    order = np.lexsort((blocks, generation, sm))
    first = np.flatnonzero(new_rows(sm[order], generation[order]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    order = np.lexsort((generation, place, sm))
    sm, generation, place = sm[order], generation[order], place[order]
    start = np.flatnonzero(new_rows(sm, place))
    first_place = np.flatnonzero(new_rows(sm[start]))
    return Residents(
        sm=sm[start][first_place],
        first_place=np.append(first_place, len(start)),
        start=np.append(start, len(order)),
        block=order,
        offset_row=np.zeros_like(order),
        times=np.ones(len(order), np.int64),
        wait=np.where(generation == 1, place / placement.resident_blocks_per_sm, 0.0),
        offset_sectors=np.zeros((1, 1), np.int64),
    )
