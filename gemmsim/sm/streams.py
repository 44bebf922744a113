"""What each warp executes: its instructions in order, and what each of its memory accesses costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.requests.coalescer import LINE_SHIFT
from gemmsim.memory.requests.generic import order_of
from gemmsim.memory.types import RecordCost
from gemmsim.native.function import NativeFunction
from gemmsim.sm.instructions import InstructionTable, instruction_table
from gemmsim.sm.loops import Loop, find_loop
from gemmsim.sm.pipes import memory_opcode
from gemmsim.sm.sync_rows import SyncFields, SyncRows
from gemmsim.sm.units.instruction import Kind
from gemmsim.support.errors import GemmsimError
from gemmsim.support.rounding import whole_in_sum
from gemmsim.support.sorting import new_rows, order_by
from gemmsim.trace.types import WarpTrace


class RecordCycles(NamedTuple):
    """What one executed memory instruction costs, in the fields of `units.execution.AccessCost`."""

    wavefronts: int
    tag_cycles: int
    l2_sectors: int
    dram_sectors: int
    dram_shared: int = 0
    runs: int = 1
    lines: int = 0
    merged_sectors: int = 0
    atomic_ps: int = 0
    execution: int = 0
    fetch: int = 0
    partial_lines: int = 0
    remote: int = 0


NO_RECORD = RecordCycles(0, 0, 0, 0)  # without an active lane an instruction passes the queue and asks for nothing
_TAGS, _L2, _EXECUTION, _FETCH, _PARTIAL, _REMOTE = (
    RecordCycles._fields.index(name)
    for name in ("tag_cycles", "l2_sectors", "execution", "fetch", "partial_lines", "remote")
)
_match = NativeFunction("gemmsim.sm.match_loop", "match", [Path(__file__).with_name("match_loop.py")])
_PS_PER_US = 1e6
_UNRECORDED = RecordCycles(1, 0, 0, 0)  # shuffles pass the data stage once and leave no memory record


Loops = dict[int, Loop | None]  # the main loops of a trace's warps, see `RecordedStreams.loop`


@dataclass(frozen=True)
class WarpStream:
    """The instructions that a warp executes.

    pcs    int32 [executed] static instruction indices
    costs  int64 [accesses, fields of RecordCycles] a row for each executed instruction of `Kind.MEMORY`, in order
    syncs  int64 [rows, fields of SyncFields] at least a row for each executed instruction that `has_syncs`, in order
    """

    pcs: NDArray[np.int32]
    costs: NDArray[np.int64]
    syncs: NDArray[np.int64]

    @classmethod
    def of(cls, pcs: list[int], costs: list[RecordCycles], syncs: Sequence[SyncFields] = ()) -> WarpStream:
        return cls(
            np.array(pcs, np.int32),
            np.array(costs, np.int64).reshape(-1, len(RecordCycles._fields)),
            np.array(syncs, np.int64).reshape(-1, len(SyncFields._fields)),
        )


class RecordedStreams:
    """The streams that a trace recorded; `cut` takes pieces out of them, together with their memory records.

    loops  those that are known of the trace, to which others are added that are asked for
    """

    def __init__(
        self,
        program: Program,
        table: InstructionTable,
        trace: WarpTrace,
        cost: RecordCost,
        loops: Loops | None = None,
    ) -> None:
        self._trace = trace
        self._loops = {} if loops is None else loops
        self._columns: tuple[NDArray, ...] = (
            cost.wavefronts,
            cost.tag_cycles,
            cost.l2_sectors,
            cost.dram_sectors,
            cost.dram_shared,
            cost.runs,
            cost.lines,
            whole_in_sum(cost.l2_sectors * cost.merged_share, np.int32),
            whole_in_sum(cost.atomic_us * _PS_PER_US) if cost.atomic_us.any() else cost.atomic_us,
        )
        self._partial_lines, self._remote = cost.partial_lines, cost.remote
        self._to_l1 = (table.rows["writes_registers"] | table.rows["copies"]) > 0
        self._on_path = table.rows["kind"] == Kind.MEMORY
        self._join_spaces(program)
        memories = [memory_opcode(i.opcode) for i in program.instructions]
        bulk = np.array([memory is not None and memory.bulk for memory in memories], bool)
        self._leave_out(bulk)  # `SyncRows` has what they cost
        self._syncs = SyncRows(program, table, trace, cost)
        memory_kinds = [memory_opcode(i.opcode) for i in program.instructions]
        self._recorded = np.array([memory is not None and not memory.bulk for memory in memory_kinds], bool)
        start = trace.pc_start.reshape(-1)
        per = trace.warps_per_block
        lengths = np.diff(start).reshape(-1, per) if len(start) > 1 else np.zeros((0, per), np.int64)
        # Warp instructions of each warp of the trace: how many it recorded, and how many it executed
        self.recorded: list[int] = lengths.reshape(-1).tolist()
        self.lengths: list[int] = self.recorded
        if trace.repeats is not None:
            self.lengths = np.diff(trace.repeats.issued.before(start)).tolist()
        # int64 [blocks, warps_per_block]: warps (row numbers of the trace) of each block that has a stream
        self.blocks: NDArray[np.int64] = np.flatnonzero(lengths.sum(axis=1) > 0)[:, None] * per + np.arange(per)
        # float64 [blocks]: how many blocks of the grid each of them stands for
        self.weight: NDArray[np.float64] = trace.weight[self.blocks[:, 0] // per]
        if not len(self.blocks):
            raise GemmsimError("the trace has no instruction streams; execute at least one block with streams recorded")

    def _join_spaces(self, program: Program) -> None:
        """Join the records that one execution of a generic access leaves in several spaces: the first gets the costs of
        all. `_leading` is then the records that are left, None where nothing was joined.
        """
        trace, self._leading = self._trace, None
        memories = [memory_opcode(i.opcode) for i in program.instructions]
        generic = np.array([memory is not None and memory.space == "generic" for memory in memories], np.bool_)
        if len(trace.record_pc) < 2 or not generic[trace.record_pc].any():
            return
        same = np.append(False, trace.record_pc[1:] == trace.record_pc[:-1]) & generic[trace.record_pc]
        same[trace.record_start[trace.record_start < len(same)]] = False
        # Records of one execution come in the order of the spaces, and have no lane in common.
        place, mask = order_of(trace.record_base), trace.patterns.active_mask[trace.record_pattern]
        follows = same & np.append(False, (place[1:] > place[:-1]) & (mask[1:] & mask[:-1] == 0))
        if not follows.any():
            return
        self._leading = np.flatnonzero(~follows)
        of = np.cumsum(~follows) - 1
        self._columns = tuple(_summed(column, of, self._leading) for column in self._columns)
        self._partial_lines = _summed(self._partial_lines, of, self._leading)
        self._remote = _summed(self._remote, of, self._leading)

    def _leave_out(self, instructions: NDArray[np.bool_]) -> None:
        """Leave the records of some instructions out of `_leading`."""
        if instructions[self._trace.record_pc].any():
            leading = np.arange(len(self._trace.record_pc)) if self._leading is None else self._leading
            self._leading = leading[~instructions[self._trace.record_pc[leading]]]

    def rows(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of `self.blocks` with the streams of `blocks`, executed blocks of the grid: int64 [n]."""
        return np.searchsorted(self._trace.blocks[self.blocks[:, 0] // self._trace.warps_per_block], blocks)

    def pcs(self, warp: int) -> NDArray[np.integer]:
        """Return what a warp of the trace executes: integers [executed], static instruction indices."""
        return self._trace.pc[self._trace.pc_start[warp] : self._trace.pc_start[warp + 1]]

    def left_out(self, warp: int, start: int, stop: int) -> int:
        """Return how many instructions the trace left out among those from `start` to `stop` of a warp's stream."""
        repeats, first = self._trace.repeats, int(self._trace.pc_start[warp])
        if repeats is None:
            return 0
        before, until = repeats.issued.before(first + np.array([start, stop])).tolist()
        return int(until - before - (stop - start))

    def loop(self, warp: int) -> Loop | None:
        """Return the main loop of a warp; None where it has none, or not the one that the trace has cut."""
        if warp not in self._loops:
            self._loops[warp] = self._find_loop(warp)
        return self._loops[warp]

    def _find_loop(self, warp: int) -> Loop | None:
        loop, left_out = find_loop(self.pcs(warp)), self.lengths[warp] - self.recorded[warp]
        if loop is None or not left_out:
            return loop
        inside = self.left_out(warp, loop.start, loop.stop)
        return replace(loop, more=left_out // loop.length) if inside == left_out else None

    def cut(self, warps: Sequence[int], parts: Mapping[int, list[tuple[int, int]]]) -> list[WarpStream]:
        """Return the streams of `warps`, the warps of one block.

        parts  for a warp, the parts [start, stop) of its stream that are taken and joined; a warp that is not a key
               keeps its whole stream
        """
        pcs, accesses, pieces = [], [], []
        for warp in warps:
            executed = self.pcs(warp)
            ranges = parts.get(warp, [(0, len(executed))])
            record = self._records(warp, executed[: max((stop for _, stop in ranges), default=0)])
            piece = _positions(ranges)
            chosen = executed[piece].astype(np.int32)
            pcs.append(chosen)
            pieces.append(piece)
            accesses.append(record[piece][self._on_path[chosen]])
        syncs = self._syncs.of_block(warps, pcs, pieces)
        return [WarpStream(*stream) for stream in zip(pcs, self._costs_of(accesses), syncs, strict=True)]

    def mbarriers(self, warps: Sequence[int], parts: Mapping[int, list[tuple[int, int]]]) -> NDArray[np.int64]:
        """Return the number of the mbarrier of which each gate of these streams is a phase; arguments as of `cut`."""
        pieces = [_positions(parts.get(warp, [(0, len(self.pcs(warp)))])) for warp in warps]
        pcs = [self.pcs(warp)[piece] for warp, piece in zip(warps, pieces, strict=True)]
        return self._syncs.mbarriers(warps, pcs, pieces)

    def _costs_of(self, accesses: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Return what the accesses of a block's warps cost: for each warp int64 [accesses, fields of RecordCycles].

        accesses  for each warp of the block, int64 [accesses] the memory record of each access (see `_records`)

        The replay of the caches lets warps take turns, but here one may be ahead of the others. So it is left open
        which warp asks L2: the loads of a line, from one that missed to before the next one that missed, all get the
        sectors of the first and the same number in `fetch`, and whichever of them issues first asks L2. A load of
        several lines counts as one of its first line.
        """
        lengths = [len(each) for each in accesses]
        ends = np.cumsum(lengths)
        record = np.concatenate(accesses)
        costs = self._costs(record)
        costs[:, _EXECUTION] = np.concatenate([self._executions(each) for each in accesses])
        known = np.flatnonzero(record >= 0)
        loads = known[self._to_l1[self._trace.record_pc[record[known]]] & (costs[known, _TAGS] > 0)]
        warp = np.repeat(np.arange(len(accesses)), lengths)[loads]
        turn = (np.arange(len(record)) - np.repeat(ends - lengths, lengths))[loads]
        line = costs[loads, _FETCH]
        order = np.lexsort((warp, turn, line))
        load, missed = loads[order], costs[loads[order], _L2] > 0
        begins = missed | (np.diff(line[order], prepend=-1) != 0)
        first = np.maximum.accumulate(np.where(begins, np.arange(len(load)), 0))
        paid = missed[first]
        costs[:, _FETCH] = 0
        costs[load[paid], _FETCH] = load[first[paid]] + 1
        costs[load[paid], _L2:_FETCH] = costs[load[first[paid]], _L2:_FETCH]
        return np.split(costs, ends[:-1])

    def _costs(self, record: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what each memory record in `record` costs by itself: int64 [records, fields of RecordCycles].

        Numbers below 0 are those of `_records`. The field `fetch` holds the number of the record's first line, the
        field `execution` 0.
        """
        costs = np.zeros((len(record), len(RecordCycles._fields)), np.int64)
        if len(self._trace.record_base):
            known = np.maximum(record, 0)
            for field, column in enumerate(self._columns):
                costs[:, field] = column[known]
            costs[:, _PARTIAL] = self._partial_lines[known]
            costs[:, _REMOTE] = self._remote[known]
            costs[:, _FETCH] = (self._trace.record_base[known] >> np.uint64(LINE_SHIFT)).astype(np.int64)
        costs[record == -1], costs[record == -2] = NO_RECORD, _UNRECORDED
        return costs

    def _executions(self, record: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how often their warp has executed the instruction of memory records before: int64 [accesses].

        record  int64 [accesses] records of one warp, ascending, and numbers of `_records` below 0, for which it is 0
        """
        found, last = np.zeros(len(record), np.int64), int(record.max(initial=-1))
        if last < 0:
            return found
        start = self._trace.record_start
        first = int(start[np.searchsorted(start, last, side="right") - 1])
        pc = self._trace.record_pc[first : last + 1]
        order = order_by(pc)
        new = new_rows(pc[order])
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order)) - np.flatnonzero(new)[np.cumsum(new) - 1]
        found[record >= 0] = number[record[record >= 0] - first]
        return found

    def _records(self, warp: int, pcs: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of the memory record of each instruction that a warp executes: int64 [executed].

        pcs  all that it executes, or the beginning of it

        It is -1 where no lane was active, and -2 for an instruction that never leaves a record.
        """
        first, last = int(self._trace.record_start[warp]), int(self._trace.record_start[warp + 1])
        positions = np.flatnonzero(self._recorded[pcs])
        numbers = np.arange(first, last)
        if self._leading is not None:
            numbers = self._leading[np.searchsorted(self._leading, first) : np.searchsorted(self._leading, last)]
        if len(pcs) < self.recorded[warp]:  # what is behind it may have records, too
            numbers = numbers[: len(positions)]
        record_pc = self._trace.record_pc[numbers]
        record = np.full(len(pcs), -2, np.int64)
        record[positions] = -1
        if len(positions) == len(record_pc) and np.array_equal(pcs[positions], record_pc):
            record[positions] = numbers
            return record
        found = _match(positions, pcs, record_pc, 0, record)
        matched = record >= 0
        record[matched] = numbers[record[matched]]
        if found < len(record_pc) and len(pcs) == self.recorded[warp]:
            raise GemmsimError(
                f"memory record {numbers[found]} (instruction {record_pc[found]}) is not in the stream of warp {warp}"
            )
        return record


def recorded_streams(
    program: Program, trace: WarpTrace, cost: RecordCost, gpu: GpuSpec, loops: Loops | None = None
) -> RecordedStreams:
    """Return the streams that `schedule` takes pieces of, with the usual options. `loops`: see `RecordedStreams`."""
    return RecordedStreams(program, instruction_table(program, gpu, True, True), trace, cost, loops)


def _positions(ranges: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    return np.concatenate([np.arange(0), *(np.arange(start, stop) for start, stop in ranges)])


def _summed(column: NDArray, of: NDArray[np.int64], leading: NDArray[np.int64]) -> NDArray:
    """Return a column of costs in which the records `leading` have the sums of the records that each stands for.

    of  int64 [records]: which of `leading` stands for each record
    """
    sums = np.zeros(len(leading), np.int64)
    np.add.at(sums, of, column)
    joined = column.astype(np.int64)
    joined[leading] = sums
    return joined
