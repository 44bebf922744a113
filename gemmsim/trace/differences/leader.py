"""Runs one block, the leader, and finds the blocks that do the same at other addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.sorting import distinct
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace import words as executor_words
from gemmsim.trace.differences.operation_rows import operation_rows
from gemmsim.trace.differences.rules import rules_of
from gemmsim.trace.engine.differences import words
from gemmsim.trace.engine.recorded import recorded
from gemmsim.trace.engine.variants import executor_for
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.one_by_one import one_by_one
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Sketch, active_lanes

if TYPE_CHECKING:
    from gemmsim.trace.execute import Executor

_VECTOR_BYTES = 1 << 28  # for all vectors; only those in use take this machine's memory
_MOST_VECTORS = 1 << 16
_CONTENT_SLOTS = 1 << 18
# What a GEMM computes from its data differs by block, too. Far fewer are needed for what leads to an address.
_MOST_LOADS, _MOST_OF_DATA = 512, 4_000
# An evaluation is one of an operation for every block. So many of them take about two seconds. A leader that needs more
# is alone in its class, and if all do, each block is executed, which takes far longer.
_LEAST_EVALUATIONS, _MOST_EVALUATIONS, _MOST_BLOCK_EVALUATIONS = 20_000, 500_000, 200_000_000
_FAR = 1 << 40  # more than any word
_AXES = ("X", "Y", "Z")


@dataclass(frozen=True)
class BlockClass:
    """Blocks that execute the same instructions as their leader, with the same access shapes at other addresses.

    leader          linear id of the block that was executed
    members         int64 [members] linear ids, ascending, the leader's among them
    record_mover    int32 [records] row of `offset_bytes` that moves the address of each record of the leader; the
                    records are in the order of `WarpTrace`, and row 0 moves nothing
    offset_bytes    int64 [movers, members] bytes from an address of the leader to that of each member
    leader_threads  int64 [instructions] thread-level executions of the leader
    varying         int64 [n] instructions that members may execute with more threads than the leader, or with fewer
    more_threads    int64 [n, members] how many more threads each member has, in all its executions together
    executed        int64 [instructions] warp-level executions of the leader, and so of each member
    data_decides    whether the content of arrays decides which threads execute some instruction, so that `threads`
                    holds only if the members' data do so as the leader's
    """

    leader: int
    members: NDArray[np.int64]
    record_mover: NDArray[np.int32]
    offset_bytes: NDArray[np.int64]
    leader_threads: NDArray[np.int64]
    varying: NDArray[np.int64]
    more_threads: NDArray[np.int64]
    executed: NDArray[np.int64]
    data_decides: bool

    @property
    def threads(self) -> NDArray[np.int64]:
        """Thread-level executions of all members together: int64 [instructions]."""
        found = self.leader_threads * len(self.members)
        np.add.at(found, self.varying, self.more_threads.sum(axis=1))
        return found

    def among(self, blocks: NDArray[np.int64]) -> BlockClass:
        """Return the class as it is where only `blocks`, members of it, are compared with the leader.

        Whether a block does what the leader does, and by how many bytes its addresses differ, does not depend on which
        other blocks are compared. Movers that differ only for blocks that are not become one.
        """
        left = np.isin(self.members, blocks)
        offset_bytes = self.offset_bytes[:, left]
        first: dict[bytes, int] = {}  # of each row the first one like it, without sorting rows of a megabyte
        alike = [first.setdefault(row.tobytes(), number) for number, row in enumerate(offset_bytes)]
        kept, mover = np.unique(alike, return_inverse=True)
        return replace(
            self,
            members=self.members[left],
            record_mover=mover.astype(np.int32)[self.record_mover],
            offset_bytes=offset_bytes[kept],
            more_threads=self.more_threads[:, left],
        )


class Tables:
    """Holds the tables of `gemmsim.trace.differences` for one leader and the blocks that it is compared with.

    executor  runs the leader
    blocks    int64 [blocks] linear ids; the first one is the leader's
    """

    def __init__(self, executor: Executor, blocks: NDArray[np.int64]) -> None:
        padded = -(-len(blocks) // WARP_LANES) * WARP_LANES
        capacity = min(_MOST_VECTORS, _VECTOR_BYTES // (4 * padded))
        self.blocks = blocks
        self.vectors = np.empty((max(capacity, 8), padded), np.int32)
        self.lowest, self.highest = np.zeros((2, len(self.vectors)), np.int64)
        self._bounded = np.zeros(len(self.vectors), np.int64)
        self._data = np.zeros(len(self.vectors), np.uint8)
        self._bits = np.zeros(len(self.vectors), np.uint32)
        self._same, self._aligned = np.zeros((2, len(self.vectors)), np.uint8)
        self.excluded = np.zeros(padded, np.uint8)
        self.threads = np.zeros((words.MAX_THREAD_ROWS, 4), np.int64)
        self.shadow = np.zeros_like(executor.state.registers).view(np.int32)
        self._shared = np.zeros_like(executor.state.shared)
        self._local = np.zeros_like(executor.state.local)
        self._content = np.full(_CONTENT_SLOTS, -1, np.int32)
        self._keys = np.zeros(2 * words.MOST_MEMO_SLOTS, np.uint64)
        self._values = np.zeros((2 * words.MOST_MEMO_SLOTS, words.RESULTS), np.int32)
        self._scratch = np.zeros(executor.state.registers.shape[1], np.uint32)
        self._saved = np.zeros((words.RESULTS, WARP_LANES), np.uint32)
        self._outcome = np.zeros((words.RESULTS, padded), np.uint32)
        self._rules = rules_of(executor.micro)
        code = executor.code if executor.trace_slice is None else executor.trace_slice
        self._operation_rows, known = operation_rows(executor.micro, code)
        self._copies = np.zeros((words.COPY_SLOTS, words.COPY_WORDS), np.int64)
        self.own = np.zeros(words.OWN_WORDS, np.int64)
        self.vectors[0], self._same[0] = 0, 1
        for unknown in (words.UNKNOWN, words.UNKNOWN_HIGH):
            self.vectors[unknown], self.vectors[unknown, 0] = 1, 0
            self.lowest[unknown], self.highest[unknown] = -_FAR, _FAR
        self._bits[words.UNKNOWN], self._bits[words.UNKNOWN_HIGH] = 0xFFFFFFFF, 0xFFFF0000
        self.own[words.USED] = words.UNKNOWN_HIGH + 1
        evaluations = min(_MOST_EVALUATIONS, max(_LEAST_EVALUATIONS, _MOST_BLOCK_EVALUATIONS // len(blocks)))
        self.own[words.EVALUATIONS_LEFT], self.own[words.LOADS_LEFT] = evaluations, _MOST_LOADS
        self.own[words.DATA_LEFT] = _MOST_OF_DATA
        self._start(executor)
        self.differs = known | self.shadow.reshape(len(self.shadow), -1, WARP_LANES).any(axis=2)
        self._fill(executor)

    def bounds(self, number: int) -> tuple[int, int] | None:
        """Return the least and the greatest difference of a vector over the blocks that are left; None where it is not
        known."""
        if number <= words.UNKNOWN_HIGH:
            return None
        count = len(self.blocks)
        left = self.vectors[number, :count][self.excluded[:count] == 0]
        return int(left.min()), int(left.max())

    def _fill(self, executor: Executor) -> None:
        arrays: dict[int, NDArray] = {
            words.VECTORS_AT: self.vectors,
            words.LOWEST_AT: self.lowest,
            words.HIGHEST_AT: self.highest,
            words.BOUNDED_AT: self._bounded,
            words.BITS_AT: self._bits,
            words.DATA_AT: self._data,
            words.CONTENT_AT: self._content,
            words.MEMO_KEYS_AT: self._keys,
            words.MEMO_VALUES_AT: self._values,
            words.SAME_AT: self._same,
            words.ALIGNED_AT: self._aligned,
            words.EXCLUDED_AT: self.excluded,
            words.RULES_AT: self._rules,
            words.COPIES_AT: self._copies,
            words.SCRATCH_AT: self._scratch,
            words.SAVED_AT: self._saved,
            words.OUTCOME_AT: self._outcome,
            words.SHARED_AT: self._shared,
            words.LOCAL_AT: self._local,
            words.THREADS_AT: self.threads,
            words.OPERATION_ROWS_AT: self._operation_rows,
            words.DIFFERS_AT: self.differs,
            words.REGISTERS_AT: executor.state.registers,
        }
        numbers = {
            words.BLOCKS: self.vectors.shape[1],
            words.CAPACITY: len(self.vectors),
            words.CONTENT_SLOTS: _CONTENT_SLOTS,
            words.MEMO_SLOTS: words.FIRST_MEMO_SLOTS,
            words.SHADOW_OFFSET: self.shadow.ctypes.data - executor.state.registers.ctypes.data,
        }
        for slot, array in arrays.items():
            self.own[slot] = array.ctypes.data
        for slot, number in numbers.items():
            self.own[slot] = number

    def _start(self, executor: Executor) -> None:
        """Make the vectors of the only registers in which blocks differ when they start: their place in the grid, and
        their rank in the cluster."""
        gx, gy, _ = executor.launch.grid
        rows = self.shadow.reshape(len(self.shadow), -1, WARP_LANES)
        places = (self.blocks % gx, self.blocks // gx % gy, self.blocks // (gx * gy))
        clusters, ranks = executor.clusters, np.zeros_like(self.blocks)
        if clusters.blocks > 1:
            ranks = clusters.places(self.blocks)[1]
        for name, place in zip((*map("SR_CTAID.{}".format, _AXES), "SR_CgaCtaId"), (*places, ranks), strict=True):
            row, used = executor.micro.specials.get(name), int(self.own[words.USED])
            if row is None or not (place != place[0]).any():
                continue
            self.vectors[used] = 0
            self.vectors[used, : len(place)] = place - place[0]
            self.lowest[used], self.highest[used] = self.vectors[used].min(), self.vectors[used].max()
            self._bits[used] = np.bitwise_or.reduce(self.vectors[used].view(np.uint32))
            self.own[words.USED] = used + 1
            rows[:, row] = used


def relate(executor: Executor, leader: int, others: NDArray[np.int64], place: int | None = None) -> BlockClass:
    """Run the block `leader`, and find which of `others` (linear ids) are in its class.

    place  None for a block that depends on no other one. Else the leader's place in its column of blocks, whose earlier
           blocks were leaders just before; `others` have the same place in theirs. What an atomic finds in global
           memory is then taken to be the same in all columns. That is so if each column has words of its own, with
           the same initial content, which is checked.

    Raises `execute.Stopped` with the status UNRELATED where the differences between blocks cannot be followed, and with
    another status where the leader cannot be executed.
    """
    tables = Tables(executor, np.concatenate([[leader], others[others != leader]]))
    tables.own[words.IN_COLUMNS] = place is not None
    sketch = _run(executor, leader, tables, not place)
    found = executor.buffers.record_mover[: len(sketch.record_pc)]
    member = tables.excluded[: len(tables.blocks)] == 0
    used = np.bincount(found, minlength=1) > 0
    used[0] = True
    numbers, movers = np.flatnonzero(used), (np.cumsum(used) - 1)[found]
    offset_bytes = tables.vectors[numbers, : len(tables.blocks)].astype(np.int64)
    member &= _inside(executor, sketch, movers, offset_bytes) & _steady(executor, leader, movers, offset_bytes)
    if place is not None and not _own_words(executor, sketch, movers, offset_bytes[:, member]):
        raise Stopped("columns of blocks share words for atomics", executor_words.UNRELATED, leader)
    order = np.argsort(tables.blocks[member], kind="stable")  # quick, as all but the leader are in order mostly
    rows = tables.threads[: int(tables.own[words.THREADS_USED])]
    sign = np.where(rows[:, words.THREAD_INVERTED] != 0, 1, -1)
    change = tables.vectors[rows[:, words.THREAD_VECTOR], : len(member)][:, member][:, order].astype(np.int64)
    return BlockClass(
        leader,
        tables.blocks[member][order],
        executor.buffers.by_warp(movers, executor.launch.warps_per_block).astype(np.int32),
        offset_bytes[:, member][:, order],
        sketch.threads_executed[0],
        rows[:, words.THREAD_INSTRUCTION],
        change * (sign * rows[:, words.THREAD_COUNT])[:, None],
        sketch.executed[0],
        bool(tables.own[words.DATA_DECIDES]),
    )


def _run(executor: Executor, leader: int, tables: Tables, fresh: bool) -> Sketch:
    """Execute the trace slice of the leader with the variant of the executor that follows differences."""
    if executor.trace_slice is None:
        raise Stopped("the program cannot be sliced", executor_words.UNRELATED, leader)
    usual, executor.run_block = executor.run_block, executor_for(relating=True)
    executor.context[executor_words.DIFFERENCES_AT] = tables.own.ctypes.data
    try:
        executor.cutting.tables = tables
        with one_by_one(executor):  # the leader runs without the others of its cluster
            sketch = executor.sketch(executor.trace_slice, [leader], fresh, executor.cutting.leaders)
        if leader in executor.cutting.cuts and not executor.program.externals:  # calls are made when it is traced
            executor.cutting.recorded[leader] = recorded(executor.buffers, sketch)
        return sketch
    finally:
        executor.run_block, executor.cutting.tables = usual, None


def _inside(
    executor: Executor, sketch: Sketch, movers: NDArray[np.int64], offset_bytes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each block whether all of its global accesses are inside the same arrays as the leader's.

    movers        int64 [records] row of `offset_bytes` that moves each record's address
    offset_bytes  int64 [movers, blocks]

    A block that leaves the arrays becomes a leader, and its execution then says what is wrong.
    """
    memory, patterns = executor.memory, sketch.patterns
    active, top = active_lanes(patterns.active_mask), np.iinfo(np.int64).max
    low = np.where(active, patterns.offsets_bytes, top).min(axis=1, initial=top)
    high = np.where(active, patterns.offsets_bytes, 0).max(axis=1, initial=0)
    chosen = np.flatnonzero(movers)
    pattern, base = sketch.record_pattern[chosen], sketch.record_base[chosen].astype(np.int64)
    first = base + low[pattern]
    last = (
        base
        + high[pattern]
        + access_bytes(executor.micro.code, len(executor.program.instructions))[sketch.record_pc[chosen]]
    )
    starts = memory.starts.astype(np.int64)
    array = np.searchsorted(starts, first, side="right") - 1
    inside = np.ones(offset_bytes.shape[1], np.bool_)
    key = movers[chosen].astype(np.int64) * len(starts) + array
    lowest, highest = np.full((2, len(offset_bytes) * len(starts)), top)
    np.minimum.at(lowest, key, first)
    np.minimum.at(highest, key, -last)
    for used in np.flatnonzero(lowest < top).tolist():
        where, moved = used % len(starts), offset_bytes[used // len(starts)]
        inside &= lowest[used] + moved >= starts[where]
        inside &= -highest[used] + moved <= starts[where] + int(memory.sizes[where])
    return inside


def _steady(
    executor: Executor, leader: int, movers: NDArray[np.int64], offset_bytes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each block whether its accesses are as far from the leader's behind iterations that were left out as
    before. An address of two words that carried into its upper one on the way, in that block alone, is not.
    """
    steady = np.ones(offset_bytes.shape[1], np.bool_)
    for cut in executor.cutting.cuts.get(leader, ()):
        before, after = (movers[at : at + cut.period_records] for at in (cut.records - cut.period_records, cut.records))
        moved = np.flatnonzero(before != after)
        for a, b in zip(*distinct(before[moved], after[moved]), strict=True):
            steady &= offset_bytes[a] == offset_bytes[b]
    return steady


def _own_words(executor: Executor, sketch: Sketch, movers: NDArray[np.int64], offset_bytes: NDArray[np.int64]) -> bool:
    """Whether each block updates words of its own with the atomics whose old value it uses, with equal initial content.

    movers, offset_bytes  as in `_inside`, but of the members of the leader's class only
    """
    code = executor.trace_slice
    assert code is not None
    atomic = (code[:, micro.OP] == CONTROL_NUMBER["access"]) & (code[:, micro.ACCESS] & micro.UNMOVED_BIT == 0)
    atomic &= code[:, micro.ACCESS] >> micro.KIND_SHIFT == micro.ATOMIC
    atomic &= code[:, micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK != micro.SHARED
    for n in np.flatnonzero(np.isin(sketch.record_pc, np.unique(code[atomic, micro.INSTRUCTION]))).tolist():
        moved = offset_bytes[movers[n]]
        if len(np.unique(moved)) != len(moved):
            return False
        lanes = active_lanes(sketch.patterns.active_mask[sketch.record_pattern[n]])
        offsets = sketch.patterns.offsets_bytes[sketch.record_pattern[n]][lanes]
        found = executor.memory.initial_words(int(sketch.record_base[n]) + np.add.outer(moved, offsets))
        if (found != found[:1]).any():
            return False
    return True


def access_bytes(code: NDArray[np.uint32], instructions: int) -> NDArray[np.int64]:
    """Return how many bytes a lane accesses, at most, in each instruction: int64 [instructions]."""
    size = (code[:, micro.ACCESS] & micro.SIZE_MASK).astype(np.int64)
    size[code[:, micro.ACCESS] & micro.PARTIAL_BIT != 0] = 1
    found = np.zeros(instructions, np.int64)
    np.maximum.at(found, code[:, micro.INSTRUCTION], size)
    return found
