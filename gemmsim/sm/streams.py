"""What each warp executes, ready for the issue stage: instructions and the cost of each memory access, in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gemmsim.errors import GemmsimError
from gemmsim.isa.program import Program
from gemmsim.memory.coalescer import LINE_SHIFT
from gemmsim.memory.types import RecordCost
from gemmsim.sm.code import Issue, Kind
from gemmsim.sm.memory_path import NO_RECORD, RecordCycles
from gemmsim.sm.pipes import memory_opcode
from gemmsim.trace.types import WarpTrace

_UNRECORDED = RecordCycles(1, 0, 0, 0)  # shuffles pass the data stage once and leave no memory record


@dataclass(frozen=True)
class WarpStream:
    """What a warp executes.

    pcs    int32 [executed] static instruction indices
    costs  int64 [accesses, fields of RecordCycles], one for each of them that goes through the memory path, in order
    """

    pcs: NDArray[np.int32]
    costs: NDArray[np.int64]

    @classmethod
    def of(cls, pcs: list[int], costs: list[RecordCycles]) -> WarpStream:
        return cls(np.array(pcs, np.int32), np.array(costs, np.int64).reshape(-1, len(RecordCycles._fields)))

    @cached_property
    def lists(self) -> tuple[list[int], list[RecordCycles]]:
        """Both as Python values, which the SimPy model is quicker with."""
        return self.pcs.tolist(), [RecordCycles(*row) for row in self.costs.tolist()]


class Streams:
    """The recorded streams of a trace; `kept` cuts pieces out of one without losing step with its memory records."""

    def __init__(self, program: Program, table: tuple[Issue, ...], trace: WarpTrace, cost: RecordCost) -> None:
        self._trace = trace
        columns = (
            cost.wavefronts,
            cost.tag_cycles,
            cost.l2_sectors,
            cost.dram_sectors,
            cost.in_flight,
            trace.record_base >> np.uint64(LINE_SHIFT),
        )
        # The last two rows are of what leaves no record: see `_records`.
        self._costs = np.array([column.astype(np.int64) for column in columns]).T
        self._costs = np.concatenate([self._costs, [_UNRECORDED, NO_RECORD]])
        self._on_path = np.array([row.kind == Kind.MEMORY for row in table], bool)
        self._recorded = np.array([memory_opcode(i.opcode) is not None for i in program.instructions], bool)
        start = trace.pc_start.reshape(-1)
        per = trace.warps_per_block
        lengths = np.diff(start).reshape(-1, per) if len(start) > 1 else np.zeros((0, per), np.int64)
        # int64 [blocks, warps_per_block]: warps (row numbers of the trace) of each block that has a stream
        self.blocks: NDArray[np.int64] = np.flatnonzero(lengths.sum(axis=1) > 0)[:, None] * per + np.arange(per)
        if not len(self.blocks):
            raise GemmsimError("the trace has no instruction streams; execute at least one block with streams recorded")

    def pcs(self, warp: int) -> NDArray[np.int32]:
        """int32 [executed] of a warp of the trace."""
        return self._trace.pc[self._trace.pc_start[warp] : self._trace.pc_start[warp + 1]]

    def kept(self, warp: int, ranges: list[tuple[int, int]]) -> WarpStream:
        """The parts [start, stop) of a warp's stream, joined."""
        pcs = self.pcs(warp)
        record = self._records(warp, pcs)
        piece = np.concatenate([np.arange(0), *(np.arange(start, stop) for start, stop in ranges)])
        chosen = pcs[piece]
        return WarpStream(chosen, self._costs[record[piece][self._on_path[chosen]]])

    def _records(self, warp: int, pcs: NDArray[np.int32]) -> NDArray[np.int64]:
        """Memory record of each executed instruction: -1 where no lane was active, -2 where none is ever recorded."""
        first, last = int(self._trace.record_start[warp]), int(self._trace.record_start[warp + 1])
        record_pc = self._trace.record_pc[first:last]
        positions = np.flatnonzero(self._recorded[pcs])
        record = np.full(len(pcs), -2, np.int64)
        record[positions] = -1
        if len(positions) == len(record_pc) and np.array_equal(pcs[positions], record_pc):
            record[positions] = np.arange(first, last)
            return record
        waiting = iter(enumerate(record_pc.tolist(), start=first))
        upcoming = next(waiting, None)
        for position, pc in zip(positions.tolist(), pcs[positions].tolist(), strict=True):
            if upcoming is not None and upcoming[1] == pc:
                record[position] = upcoming[0]
                upcoming = next(waiting, None)
        if upcoming is not None:
            raise GemmsimError(
                f"memory record {upcoming[0]} (instruction {upcoming[1]}) is not in the stream of warp {warp}"
            )
        return record
