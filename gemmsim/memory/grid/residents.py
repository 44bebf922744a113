"""Which blocks share an SM, and when: the order in which the cache replays follow a grid's requests.

`placement` says on which SM and in which generation each block runs. The blocks of one SM that are resident together
form a group. The warps of a group take turns (round robin), and each makes its next request when its turn comes. On
hardware warps drift apart, so hits between blocks that share data by chance differ there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.trace.types import WarpTrace

_GOLDEN = 0.6180339887498949  # multiples of it spread evenly


@dataclass(frozen=True)
class ResidentGroups:
    """Groups of blocks that are resident together, ordered by SM and then by time.

    sm      int64 [groups] SM of each group, ascending; its L1 is cold at its first group
    start   int64 [groups + 1] group g has members start[g]:start[g + 1]
    block   int64 [members] index into the trace's blocks: whose accesses the member makes
    moved   int64 [members] row of `shift`
    times   int64 [members] how often what it hits and misses counts; 0: not at all
    phase   float64 [members] where in its accesses it begins, as a share of them; those before come last
    shift   int64 [rows, instructions] sectors by which its addresses are moved
    """

    sm: NDArray[np.int64]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    moved: NDArray[np.int64]
    times: NDArray[np.int64]
    phase: NDArray[np.float64]
    shift: NDArray[np.int64]


def residents_of_grid(trace: WarpTrace, placement: Placement) -> ResidentGroups:
    """Where and when the blocks of a trace that has all of them run."""
    blocks = trace.blocks
    sm, wave = placement.sm[blocks], placement.generation[blocks]
    order = np.lexsort((blocks, wave, sm))
    sm, wave = sm[order], wave[order]
    first = np.ones(len(order), bool)
    first[1:] = (sm[1:] != sm[:-1]) | (wave[1:] != wave[:-1])
    begin = np.flatnonzero(first)
    still = np.zeros((1, trace.executed.shape[1]), np.int64)
    return ResidentGroups(
        sm=sm[begin],
        start=np.append(begin, len(order)),
        block=order,
        moved=np.zeros_like(order),
        times=np.ones(len(order), np.int64),
        phase=phase_of(blocks[order], wave),
        shift=still,
    )


def phase_of(blocks: NDArray[np.int64], generation: NDArray[np.int64]) -> NDArray[np.float64]:
    """Blocks of the first generation start together; later ones when a place is free, at any time of the others'.

    While one of these has begun, another is near its end: begun in its midst, and what it left out put last, it has the
    others beside it as long as it runs, as on an SM that always takes up another block.
    """
    return np.where(generation > 0, blocks * _GOLDEN % 1.0, 0.0)
