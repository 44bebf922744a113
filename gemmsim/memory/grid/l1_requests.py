"""Collects the requests of a trace that go through L1, warp by warp."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.cache_operations import ATOMIC, READ, READ_PAST_L1, WRITE, WRITE_PAST_L1
from gemmsim.memory.requests.coalescer import SECTOR_SHIFT
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.trace.types import WarpTrace

_OPERATIONS = {"ld": READ, "ldgsts": READ, "st": WRITE, "atom": ATOMIC, "red": ATOMIC}
_BYPASSING = {"ld": READ_PAST_L1, "ldgsts": READ_PAST_L1}
_BYPASSING |= {"tma_ld": READ_PAST_L1, "tma_st": WRITE_PAST_L1, "tma_red": ATOMIC}
_number_executions = native_loop("grid/l1_requests_loop", "number_executions")


@dataclass(frozen=True)
class L1Requests:
    """The global and local memory requests of a trace, in the order of its records.

    record           int64 [requests] index of the memory record
    base_sector      int64 [requests] number of the sector of the record's base: address / 32
    shape            int32 [requests] index into `Shapes`
    operation        uint8 [requests] READ, WRITE, ATOMIC, READ_PAST_L1 or WRITE_PAST_L1
    pc               int32 [requests] static instruction index
    last_use         bool [requests] whether it reads what is not read again (`Access.last_use`)
    evict_first      bool [requests] whether L2 is told to replace it first (`Access.evict_first`)
    mover            int32 [requests] row of the offsets that move its address to those of other blocks (`Relation`)
    start            int64 [warps + 1] warp w has the requests start[w]:start[w + 1]
    warps_per_block  warps w of block b (an index into the trace's blocks) are those with w // warps_per_block == b
    times, step      int64 [requests] how many requests each stands for, and by how many sectors each of these is on
                     from the one before; of no elements where each stands for itself
    """

    record: NDArray[np.int64]
    base_sector: NDArray[np.int64]
    shape: NDArray[np.int32]
    operation: NDArray[np.uint8]
    pc: NDArray[np.int32]
    last_use: NDArray[np.bool_]
    evict_first: NDArray[np.bool_]
    mover: NDArray[np.int32]
    start: NDArray[np.int64]
    warps_per_block: int
    times: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    step: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def of_blocks(self, values: NDArray) -> NDArray:
        """Give each request the value of its block: from `values` [blocks] to [requests]."""
        return np.repeat(values, np.diff(self.start[:: self.warps_per_block]))

    def of_warps(self, values: NDArray) -> NDArray:
        """Give each request the value of its warp: from `values` [warps] to [requests]."""
        return np.repeat(values, np.diff(self.start))

    def execution_number(self) -> NDArray[np.int64]:
        """Return how often the warp of each request has executed its instruction before: int64 [requests]."""
        number = np.empty(len(self.pc), np.int64)
        if len(self.pc):
            _number_executions(self.pc, self.start, np.zeros((2, int(self.pc.max()) + 1), np.int64), number)
        return number


def l1_requests_of(trace: WarpTrace, shapes: Shapes, accesses: dict[int, Access]) -> L1Requests:
    """Return the requests of a trace to global and local memory. Those to shared memory are left out."""
    operation_of_pc = np.full(trace.executed.shape[1], -1, np.int8)
    for index, access in accesses.items():
        if not access.on_chip:
            operation_of_pc[index] = (_BYPASSING if access.bypasses else _OPERATIONS)[access.op]
    operation = operation_of_pc[trace.record_pc]
    record, stands_for = np.flatnonzero(operation >= 0), {}
    if trace.repeats is not None:
        step = trace.repeats.step_bytes[record].astype(np.int64) >> SECTOR_SHIFT
        stands_for = {"times": trace.repeats.of_record[record].astype(np.int64), "step": step}

    def said(what: str) -> NDArray[np.bool_]:
        return np.isin(trace.record_pc[record], [index for index, access in accesses.items() if getattr(access, what)])

    return L1Requests(
        record=record,
        base_sector=(trace.record_base[record] >> np.uint64(SECTOR_SHIFT)).astype(np.int64),
        shape=shapes.of_record[record],
        operation=operation[record].astype(np.uint8),
        pc=trace.record_pc[record],
        last_use=said("last_use"),
        evict_first=said("evict_first"),
        mover=trace.relation.record_mover[record] if trace.relation else np.zeros(len(record), np.int32),
        start=np.searchsorted(record, trace.record_start).astype(np.int64),
        warps_per_block=trace.warps_per_block,
        **stands_for,
    )
