"""The accesses that go to L1, by warp, and which blocks share an SM: the order that the cache replays follow.

Block b of the grid runs on SM b modulo the number of SMs, and the blocks of an SM run in groups of those that are
resident together; warps of a group take turns, each with its next access (round robin). The hardware's block scheduler
hands a block to whichever SM has room, and warps drift apart: hits between blocks that share data by chance differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.access import Access
from gemmsim.memory.coalescer import SECTOR_SHIFT
from gemmsim.memory.shapes import Shapes
from gemmsim.trace.types import WarpTrace

READ, WRITE, ATOMIC, PAST = 0, 1, 2, 3  # kind of an access; PAST: a read that bypasses L1
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
    counts  bool [members] whether what it hits and misses is recorded
    shift   int64 [rows, instructions] sectors by which its addresses are moved
    """

    sm: NDArray[np.int64]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    moved: NDArray[np.int64]
    counts: NDArray[np.bool_]
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


def residents_of(trace: WarpTrace, sms: int, resident_blocks_per_sm: int) -> Residents:
    """Where and when the blocks of a trace that has all of them run."""
    blocks = trace.blocks
    sm = blocks % sms
    wave = blocks // sms // resident_blocks_per_sm
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
        counts=np.ones(len(order), bool),
        shift=still,
    )
