"""Finds which blocks share an SM, and when: the order in which the cache replays follow the requests of a grid.

`placement` says on which SM and in which generation each block runs. The blocks of one SM that are resident together
form a group. The warps of a group take turns (round robin), and each makes its next request when its turn comes. On
hardware warps drift apart, so hits between blocks that share data by chance differ there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.support.sorting import new_rows

_GOLDEN_RATIO = 0.6180339887498949  # its multiples, modulo 1, spread evenly over 0 to 1


@dataclass(frozen=True)
class ResidentGroups:
    """Groups of blocks, the members, that are resident on an SM together. Groups are ordered by SM, then by time.

    sm            int64 [groups] SM of each group, ascending; its L1 is empty when its first group begins
    start         int64 [groups + 1] group g has the members start[g]:start[g + 1]
    block         int64 [members] index into the trace's blocks: the member makes the requests of this block
    offset_row    int64 [members] index of the row of `offset_sectors` that moves the member's addresses
    times         int64 [members] how many equal members this one stands for: its hits and misses count so often, or
                  not at all if 0
    phase         float64 [members] share of its requests that the member skips when it begins, and makes at the end
    offset_sectors  int64 [rows, movers] sectors that are added to the addresses of requests, by `L1Requests.mover`
    """

    sm: NDArray[np.int64]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    offset_row: NDArray[np.int64]
    times: NDArray[np.int64]
    phase: NDArray[np.float64]
    offset_sectors: NDArray[np.int64]


def residents_of_grid(blocks: NDArray[np.int64], placement: Placement) -> ResidentGroups:
    """Return the groups of a grid whose blocks were all executed; `blocks` are the linear ids of the trace's blocks."""
    sm, generation = placement.sm[blocks], placement.generation[blocks]
    order = np.lexsort((blocks, generation, sm))
    sm, generation = sm[order], generation[order]
    first = np.flatnonzero(new_rows(sm, generation))
    return ResidentGroups(
        sm=sm[first],
        start=np.append(first, len(order)),
        block=order,
        offset_row=np.zeros_like(order),
        times=np.ones(len(order), np.int64),
        phase=phase_of(blocks[order], generation),
        offset_sectors=np.zeros((1, 1), np.int64),
    )


def phase_of(blocks: NDArray[np.int64], generation: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return at which of its requests each block begins, as a share of their number: float64 [blocks], from 0 to 1.

    Blocks of the first generation start together. A later block starts whenever another one ends, so the blocks beside
    it may be anywhere in their work. A replay that let a whole generation start together would put them in step again.
    Here each later block begins at a point of its own in its requests and makes those that it skipped last.
    """
    return np.where(generation > 0, blocks * _GOLDEN_RATIO % 1.0, 0.0)
