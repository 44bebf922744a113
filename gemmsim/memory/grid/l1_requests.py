"""The requests that go through L1, warp by warp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.cache_operations import ATOMIC, READ, READ_PAST_L1, WRITE
from gemmsim.memory.requests.coalescer import SECTOR_SHIFT
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.trace.types import WarpTrace

_OPERATIONS = {"ld": READ, "ldgsts": READ, "st": WRITE, "atom": ATOMIC, "red": ATOMIC}


@dataclass(frozen=True)
class L1Requests:
    """The global and local accesses of a trace, in its order.

    record   int64 [accesses] index of the memory record
    sector   int64 [accesses] its base address in sectors
    shape    int32 [accesses]
    kind     uint8 [accesses] READ, WRITE, ATOMIC or READ_PAST_L1
    pc       int32 [accesses] static instruction
    start    int64 [warps + 1] accesses of warp w are start[w]:start[w + 1]
    """

    record: NDArray[np.int64]
    sector: NDArray[np.int64]
    shape: NDArray[np.int32]
    kind: NDArray[np.uint8]
    pc: NDArray[np.int32]
    start: NDArray[np.int64]


def l1_requests_of(trace: WarpTrace, shapes: Shapes, accesses: dict[int, Access]) -> L1Requests:
    """The records that L1 sees; shared memory has none of them."""
    kinds = np.full(trace.executed.shape[1], -1, np.int8)
    for index, access in accesses.items():
        if access.space != "shared":
            kinds[index] = READ_PAST_L1 if access.bypasses else _OPERATIONS[access.op]
    kind = kinds[trace.record_pc]
    record = np.flatnonzero(kind >= 0)
    return L1Requests(
        record=record,
        sector=(trace.record_base[record] >> np.uint64(SECTOR_SHIFT)).astype(np.int64),
        shape=shapes.of_record[record],
        kind=kind[record].astype(np.uint8),
        pc=trace.record_pc[record],
        start=np.searchsorted(record, trace.record_start).astype(np.int64),
    )
