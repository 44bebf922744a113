"""Holds the arrays to which the compiled executor appends the trace, and sorts them into a `WarpTrace`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gemmsim.native.function import NativeFunction
from gemmsim.support.errors import GemmsimError
from gemmsim.support.free_memory import free_memory_bytes
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import words
from gemmsim.trace.repeats import Issued, Repeat, Repeats, steps_of, times_of
from gemmsim.trace.types import Patterns, Sketch, Syncs, WarpTrace, active_lanes

# Only pages that are touched cost memory, so the buffers start large and rarely grow.
_FIRST_CAPACITY = 1 << 24
# A trace has so many records and instructions at most, which take 1.3 and 1 GiB.
_MOST_KEPT, _MOST_ISSUED = 1 << 26, 1 << 28
# What sorting the records and the models of memory and time add to the 16 bytes of a record
_MORE_BYTES_A_RECORD = 48
_MOST_RECORDS = 3  # that one instruction leaves: a generic access may reach global, shared and local memory
_ISSUE_BITS = 36  # of the number of an instruction among all that were issued
# Where the context has the addresses of the arrays
_SLOTS = [
    *(words.COUNTERS_AT, words.PATTERNS_AT, words.HASH_AT, words.LAST_AT),
    *(words.RECORD_PC_AT, words.RECORD_PATTERN_AT, words.RECORD_BASE_AT, words.RECORD_MOVER_AT),
    *(words.SEGMENT_WARP_AT, words.SEGMENT_START_AT, words.SEGMENT_RECORD_AT, words.PC_AT, words.SYNC_AT),
]
_put_in_order = NativeFunction(
    "gemmsim.trace.engine.in_order_loop", "put_in_order", [Path(__file__).with_name("in_order_loop.py")]
)
_MOST_SYNCS = 64  # rows that one instruction leaves at most: each lane may arrive at an mbarrier of its own


class Buffers:
    """Holds the arrays to which the compiled executor appends the trace. They grow when it returns GROW."""

    def __init__(self, warps: int, accesses: int, budget: int) -> None:
        self.counters = np.zeros(words.COUNTERS, np.int64)
        self.counters[words.BUDGET_LEFT], self.counters[words.COLUMNS_LEFT] = budget, words.UNLIMITED
        capacity = _FIRST_CAPACITY
        # A segment is what one warp does until it ends or waits. Of each, these arrays hold its warp and the numbers of
        # its first instruction and its first record.
        self.segment_warp = np.zeros(4096, np.int32)
        self.segment_start, self.segment_record = np.zeros(4096, np.int64), np.zeros(4096, np.int64)
        self.pc = np.empty(4 * capacity, np.int32)
        self.last = np.full((warps, accesses, words.LAST_WORDS), -1, np.int32)
        self.record_pc, self.record_pattern = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        self.record_base, self.record_mover = np.empty(capacity, np.uint64), np.empty(capacity, np.int32)
        self.patterns = np.zeros((256, words.PATTERN_WORDS), np.uint64)
        self.syncs = np.empty((capacity // 64, words.SYNC_WORDS), np.int64)
        self.table = np.full(words.HASH_SLOTS, -1, np.int32)
        self.repeats: list[Repeat] = []
        self._addresses: NDArray[np.uint64] | None = None  # of the arrays; None where one is another one now

    def clear(self, budget: int) -> None:
        """Empty the buffers. The arrays that `sketch` returned before are overwritten from now on."""
        self.counters[:] = 0
        self.counters[words.BUDGET_LEFT], self.counters[words.COLUMNS_LEFT] = budget, words.UNLIMITED
        self.last[:] = -1
        self.table[:] = -1
        self.repeats.clear()

    def renew_records(self) -> None:
        """Take other arrays for the records from now on, so that those of the last sketch stay as they are."""
        self.record_pc, self.record_pattern, self.record_base = map(
            np.empty_like, (self.record_pc, self.record_pattern, self.record_base)
        )
        self._addresses = None

    def forget_stream(self, segment: int, issued: int, syncs: int) -> None:
        """Forget the instructions from number `issued` on, which are those of the segments from `segment` on, and what
        they did at barriers, which are the rows from `syncs` on."""
        self.counters[words.SYNCS] = syncs
        self.segment_start[segment : self.counters[words.SEGMENTS]] = issued
        self.counters[words.ISSUED] = issued
        self.repeats = [replace(r, issued=(min(r.issued[0], issued), min(r.issued[1], issued))) for r in self.repeats]

    def fill(self, context: NDArray[np.uint64]) -> None:
        """Write the addresses and limits of the buffers into the context (`gemmsim.trace.words`).

        The limits leave room for one more instruction.
        """
        if self._addresses is None:  # asking for them takes longer than some blocks run until they are filled in again
            self._addresses = np.array([array.ctypes.data for array in self._arrays()], np.uint64)
        context[_SLOTS] = self._addresses
        room = self._room
        context[words.RECORD_LIMIT] = max(0, len(self.record_pc) - room)
        context[words.PATTERN_LIMIT] = max(0, len(self.patterns) - room - 1)
        context[words.SYNC_LIMIT] = len(self.syncs) - _MOST_SYNCS
        context[words.SEGMENT_LIMIT], context[words.PC_LIMIT] = len(self.segment_warp), len(self.pc)

    def _arrays(self) -> tuple[NDArray, ...]:
        """The arrays, in the order of `_SLOTS`."""
        return (
            *(self.counters, self.patterns, self.table, self.last),
            *(self.record_pc, self.record_pattern, self.record_base, self.record_mover),
            *(self.segment_warp, self.segment_start, self.segment_record, self.pc, self.syncs),
        )

    @property
    def _room(self) -> int:
        """How many records the next instruction may leave, of as many patterns: a bulk copy says so before."""
        return max(_MOST_RECORDS, int(self.counters[words.ROOM]))

    def grow(self) -> None:
        """Make each array that is nearly full twice as long, or longer where `_room` needs that."""
        c, room = self.counters, self._room
        self._addresses = None
        if c[words.ISSUED] >= len(self.pc):
            _check_length(2 * len(self.pc), _MOST_ISSUED, "execute instructions")
            self.pc = _doubled(self.pc, c[words.ISSUED])
        if c[words.SYNCS] >= len(self.syncs) - _MOST_SYNCS:
            self.syncs = _doubled(self.syncs, c[words.SYNCS])
        self.make_room(room, 1, room + 1)

    def make_room(self, records: int, segments: int, patterns: int) -> None:
        """Make arrays twice as long, and again, until so many more fit in."""
        c = self.counters
        self._addresses = None
        while (used := c[words.SEGMENTS]) > len(self.segment_warp) - segments:
            self.segment_warp = _doubled(self.segment_warp, used)
            self.segment_start = _doubled(self.segment_start, used)
            self.segment_record = _doubled(self.segment_record, used)
        while (used := c[words.RECORDS]) >= len(self.record_pc) - records:
            _check_length(2 * len(self.record_pc), _MOST_KEPT, "access memory")
            _check_memory(2 * len(self.record_pc))
            self.record_pc, self.record_pattern = _doubled(self.record_pc, used), _doubled(self.record_pattern, used)
            self.record_base, self.record_mover = _doubled(self.record_base, used), _doubled(self.record_mover, used)
        while (used := c[words.PATTERNS]) >= len(self.patterns) - patterns:
            if 2 * len(self.patterns) > words.HASH_SLOTS // 2:
                raise GemmsimError(
                    f"the kernel's accesses have more than {len(self.patterns)} different shapes: "
                    "analyse a smaller problem"
                )
            self.patterns = _doubled(self.patterns, used)

    def known_patterns(self) -> Patterns:
        patterns = int(self.counters[words.PATTERNS])
        mask = self.patterns[:patterns, words.PATTERN_MASK].astype(np.uint32)
        active = active_lanes(mask)
        return Patterns(np.where(active, self.patterns[:patterns, :WARP_LANES].astype(np.int64), 0), mask)

    def sketch(self, executed: NDArray[np.int64], threads: NDArray[np.int64]) -> Sketch:
        """Return what was recorded since `clear`, in the order of execution. The arrays are not copied.

        executed, threads  int64 [blocks, instructions], executions by warps and by threads
        """
        records = int(self.counters[words.RECORDS])
        pc, pattern, base = self.record_pc[:records], self.record_pattern[:records], self.record_base[:records]
        return Sketch(executed, threads, pc, pattern, base, self.known_patterns())

    def by_warp(self, of_records: NDArray, warps: int) -> NDArray:
        """Return values of records, which are in the order of execution, in the order of `WarpTrace`."""
        c, segments = self.counters, int(self.counters[words.SEGMENTS])
        first = self.segment_record[:segments]
        return _ByWarp(self.segment_warp[:segments], first, int(c[words.RECORDS]), warps).sorted(of_records)

    def finish(
        self,
        warps_per_block: int,
        blocks: NDArray[np.int64],
        weight: NDArray[np.float64],
        executed: NDArray[np.int64],
        threads: NDArray[np.int64],
    ) -> WarpTrace:
        """Return the trace of what was recorded, with records and streams sorted by warp. Nothing more can be recorded.

        The parameters are the fields of `WarpTrace` with these names; `threads` is its `threads_executed`.
        """
        self._addresses = None
        warps, patterns = len(blocks) * warps_per_block, self.known_patterns()
        c, segments = self.counters, int(self.counters[words.SEGMENTS])
        warp = self.segment_warp[:segments]
        records = _ByWarp(warp, self.segment_record[:segments], int(c[words.RECORDS]), warps)
        pcs = _ByWarp(warp, self.segment_start[:segments], int(c[words.ISSUED]), warps)
        syncs, self.syncs = self.syncs[: int(c[words.SYNCS])], np.empty((0, words.SYNC_WORDS), np.int64)
        self.record_mover = np.empty(0, np.int32)
        repeats = None
        if self.repeats:
            record_warp = np.repeat(warp, np.diff(self.segment_record[:segments], append=c[words.RECORDS]))
            steps = steps_of(self.repeats, self.record_pc[: len(record_warp)], record_warp)
            times = times_of([(r.records, r.times) for r in self.repeats], len(record_warp))
            issued = Issued(self.repeats, pcs.first, pcs.length)
            repeats = Repeats(records.sorted(times), issued, records.sorted(steps))
            del times, steps
        # There may be tens of millions of instructions and records, which are held twice no longer than needed.
        sorted_pcs = pcs.sorted(self.pc, np.uint16 if executed.shape[1] <= 1 << 16 else np.int32)
        self.pc = np.empty(0, np.int32)
        record_pc, self.record_pc = records.sorted(self.record_pc), np.empty(0, np.int32)
        record_pattern, self.record_pattern = records.sorted(self.record_pattern), np.empty(0, np.int32)
        record_base, self.record_base = records.sorted(self.record_base), np.empty(0, np.uint64)
        return WarpTrace(
            warps_per_block,
            blocks,
            weight,
            executed,
            threads,
            records.start,
            record_pc,
            record_pattern,
            record_base,
            pcs.start,
            sorted_pcs,
            patterns,
            syncs=_syncs(syncs, pcs, sorted_pcs) if len(syncs) else None,
            repeats=repeats,
        )


def _syncs(rows: NDArray[np.int64], pcs: _ByWarp, sorted_pcs: NDArray[np.int32]) -> Syncs:
    """Make `Syncs` of the rows that the executor left: each belongs to the newest execution of its instruction."""
    rows = rows[np.argsort(rows[:, words.SYNC_OF_WARP], kind="stable")]
    of_warp, pc = rows[:, words.SYNC_OF_WARP], rows[:, words.SYNC_PC]
    instructions = max(int(pc.max()), int(sorted_pcs.max())) + 1
    has_rows = np.zeros(instructions, np.bool_)
    has_rows[pc] = True
    chosen = np.flatnonzero(has_rows[sorted_pcs])
    warp = np.searchsorted(pcs.start, chosen, side="right") - 1
    those, number_of = int(has_rows.sum()), np.cumsum(has_rows) - 1
    number = np.append(warp * those + number_of[sorted_pcs[chosen]], of_warp * those + number_of[pc])
    assert int(number.max()) + 1 << _ISSUE_BITS < 1 << 63, "instructions and warps are fewer than that"
    place = (number[: len(chosen)] << _ISSUE_BITS) + pcs.numbers(chosen)
    ascending = np.argsort(place)
    wanted = (number[len(chosen) :] << _ISSUE_BITS) + rows[:, words.SYNC_ISSUED]
    found = chosen[ascending][np.searchsorted(place[ascending], wanted) - 1]
    return Syncs(
        np.searchsorted(of_warp, np.arange(len(pcs.start))),
        found - pcs.start[of_warp],
        rows[:, words.SYNC_ISSUED],
        rows[:, words.SYNC_BARRIER],
        rows[:, words.SYNC_PHASE],
        rows[:, words.SYNC_BYTES],
        rows[:, words.SYNC_RECORDS],
        rows[:, words.SYNC_MAP],
        rows[:, words.SYNC_REQUESTS],
    )


def _check_length(wanted: int, most: int, do: str) -> None:
    """Raises GemmsimError where a trace would hold more than it may."""
    if wanted > most:
        raise GemmsimError(
            f"the blocks that are executed {do} more than {most:,} times, which is as much as a trace holds: analyse a "
            "smaller problem"
        )


def _check_memory(records: int) -> None:
    """Raises GemmsimError where this machine has too little memory for a trace of so many records."""
    free = free_memory_bytes()
    if free is not None and free < records * _MORE_BYTES_A_RECORD:
        raise GemmsimError(
            f"the blocks that are executed access memory more than {records // 2:,} times, and the "
            f"{free / 2**30:.0f} GiB that are free here do not hold what is kept of each: analyse a smaller problem"
        )


def _doubled(array: NDArray, used: np.int64) -> NDArray:
    """Return an array twice as long that begins with the items in use: the pages of others cost nothing."""
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


class _ByWarp:
    """Puts the items of a recorded array in the order of their warps.

    The items come in segments, each of one warp: segment s holds the items first[s]:first[s + 1] of warp
    segment_warp[s]. `sorted` returns each warp's items in program order, and does not copy the array where it is in
    order already.

    start          int64 [warps + 1], where the items of each warp begin in what `sorted` returns
    first, length  int64 [segments] first item of each segment, and how many it has, in the order of `sorted`
    """

    def __init__(self, segment_warp: NDArray[np.int32], first: NDArray[np.int64], total: int, warps: int) -> None:
        length = np.diff(np.append(first, total))
        self._in_order = bool((segment_warp[1:] >= segment_warp[:-1]).all())  # it is where no warp waited for another
        order = np.argsort(segment_warp, kind="stable")
        self.first, self.length, self._total = first[order], length[order], total
        per_warp = np.bincount(segment_warp, weights=length, minlength=warps).astype(np.int64)
        self.start = np.append(0, np.cumsum(per_warp))

    def sorted(self, array: NDArray, dtype: DTypeLike | None = None) -> NDArray:
        """Return an array's items in order. `dtype`: in which these are held, None for that of `array`."""
        if self._in_order:
            return array[: self._total].astype(dtype or array.dtype, copy=False)
        found = np.empty(self._total, dtype or array.dtype)
        _put_in_order(array, self.first, self.length, found)
        return found

    def numbers(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where items were before that are at some places in the order of warps: int64 [places]."""
        ends = np.cumsum(self.length)
        segment = np.searchsorted(ends, places, side="right")
        return places + (self.first - (ends - self.length))[segment]
