"""The accesses that go to L1, by warp, and which blocks share an SM: the order that the cache replays follow.

Blocks run where `placement` says, those of an SM in groups of those that are resident together; warps of a group take
turns, each with its next access (round robin). On hardware warps drift apart: hits between blocks that share data by
chance differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.caches.access_kinds import ATOMIC, PAST, READ, WRITE
from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.coalescer import SECTOR_SHIFT
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.trace.types import WarpTrace

_GOLDEN = 0.6180339887498949  # multiples of it spread evenly
_KINDS = {"ld": READ, "ldgsts": READ, "st": WRITE, "atom": ATOMIC, "red": ATOMIC}


@dataclass(frozen=True)
class Streams:
    """The global and local accesses of a trace, in its order.

    record   int64 [accesses] index of the memory record
    sector   int64 [accesses] its base address in sectors
    shape    int32 [accesses]
    kind     uint8 [accesses] READ, WRITE, ATOMIC or PAST
    pc       int32 [accesses] static instruction
    start    int64 [warps + 1] accesses of warp w are start[w]:start[w + 1]
    """

    record: NDArray[np.int64]
    sector: NDArray[np.int64]
    shape: NDArray[np.int32]
    kind: NDArray[np.uint8]
    pc: NDArray[np.int32]
    start: NDArray[np.int64]


@dataclass(frozen=True)
class Residents:
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


def streams_of(trace: WarpTrace, shapes: Shapes, accesses: dict[int, Access]) -> Streams:
    """The records that L1 sees; shared memory has none of them."""
    kinds = np.full(trace.executed.shape[1], -1, np.int8)
    for index, access in accesses.items():
        if access.space != "shared":
            kinds[index] = PAST if access.bypasses else _KINDS[access.op]
    kind = kinds[trace.record_pc]
    record = np.flatnonzero(kind >= 0)
    return Streams(
        record=record,
        sector=(trace.record_base[record] >> np.uint64(SECTOR_SHIFT)).astype(np.int64),
        shape=shapes.of_record[record],
        kind=kind[record].astype(np.uint8),
        pc=trace.record_pc[record],
        start=np.searchsorted(record, trace.record_start).astype(np.int64),
    )


def residents_of(trace: WarpTrace, placement: Placement) -> Residents:
    """Where and when the blocks of a trace that has all of them run."""
    blocks = trace.blocks
    sm, wave = placement.sm[blocks], placement.generation[blocks]
    order = np.lexsort((blocks, wave, sm))
    sm, wave = sm[order], wave[order]
    first = np.ones(len(order), bool)
    first[1:] = (sm[1:] != sm[:-1]) | (wave[1:] != wave[:-1])
    begin = np.flatnonzero(first)
    still = np.zeros((1, trace.executed.shape[1]), np.int64)
    return Residents(
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
