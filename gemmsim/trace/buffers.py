"""The growing arrays that the compiled executor appends to, and their sorting into a WarpTrace."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gemmsim.errors import GemmsimError
from gemmsim.trace import state
from gemmsim.trace.memory_access import HASH_SLOTS
from gemmsim.trace.types import WARP_LANES, Patterns, WarpTrace

# Only touched pages cost memory, so buffers start large and rarely grow.
_FIRST_CAPACITY = 1 << 22


class Buffers:
    """The growing arrays that the compiled executor appends to."""

    def __init__(self, warps: int, instructions: int, budget: int) -> None:
        self.counters = np.zeros(state.COUNTERS, np.int64)
        self.counters[state.BUDGET_LEFT] = budget
        capacity = _FIRST_CAPACITY
        self.segment_warp, self.segment_start = np.zeros(4096, np.int32), np.zeros(4096, np.int64)
        self.pc = np.empty(4 * capacity, np.int32)
        self.last = np.full((warps, instructions), -1, np.int32)
        self.record_warp, self.record_pc = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        self.record_pattern, self.record_base = np.empty(capacity, np.int32), np.empty(capacity, np.uint64)
        self.patterns = np.zeros((256, state.PATTERN_WORDS), np.uint64)
        self.table = np.full(HASH_SLOTS, -1, np.int32)

    def trace(self) -> tuple[object, ...]:
        """What `run_block` takes as `trace`; room for one more record and pattern is kept back."""
        limits = (len(self.record_pc) - 1, len(self.patterns) - 2)
        return (self.counters, self.segment_warp, self.segment_start, self.pc, *limits)

    def fill(self, context: NDArray[np.uint64]) -> None:
        """Write the buffers' addresses into the context."""
        arrays = {
            state.COUNTERS_AT: self.counters,
            state.PATTERNS_AT: self.patterns,
            state.HASH_AT: self.table,
            state.LAST_AT: self.last,
            state.RECORD_WARP_AT: self.record_warp,
            state.RECORD_PC_AT: self.record_pc,
            state.RECORD_PATTERN_AT: self.record_pattern,
            state.RECORD_BASE_AT: self.record_base,
        }
        for slot, array in arrays.items():
            context[slot] = array.ctypes.data

    def grow(self) -> None:
        """Double whatever is nearly full."""
        c = self.counters
        if c[state.SEGMENTS] >= len(self.segment_warp) - 1:
            self.segment_warp, self.segment_start = _doubled(self.segment_warp), _doubled(self.segment_start)
        if c[state.ISSUED] >= len(self.pc):
            self.pc = _doubled(self.pc)
        if c[state.RECORDS] >= len(self.record_pc) - 1:
            self.record_warp, self.record_pc = _doubled(self.record_warp), _doubled(self.record_pc)
            self.record_pattern, self.record_base = _doubled(self.record_pattern), _doubled(self.record_base)
        if c[state.PATTERNS] >= len(self.patterns) - 2:
            if 2 * len(self.patterns) > HASH_SLOTS // 2:
                raise GemmsimError(
                    f"the kernel's accesses have more than {len(self.patterns)} different shapes: "
                    "analyse a smaller problem"
                )
            self.patterns = _doubled(self.patterns)

    def finish(
        self,
        warps_per_block: int,
        blocks: NDArray[np.int64],
        weight: NDArray[np.float64],
        executed: NDArray[np.int64],
        threads: NDArray[np.int64],
    ) -> WarpTrace:
        """Sort records and streams by warp."""
        warps = len(blocks) * warps_per_block
        records, segments = int(self.counters[state.RECORDS]), int(self.counters[state.SEGMENTS])
        order, record_start = _group(self.record_warp[:records], warps)
        stops = np.append(self.segment_start[1:segments], self.counters[state.ISSUED]).astype(np.int64)
        pc, pc_start = _join(self.pc, self.segment_warp[:segments], self.segment_start[:segments], stops, warps)
        patterns = int(self.counters[state.PATTERNS])
        mask = self.patterns[:patterns, state.PATTERN_MASK].astype(np.uint32)
        active = (mask[:, None] >> np.arange(WARP_LANES, dtype=np.uint32)) & 1 == 1
        offsets = np.where(active, self.patterns[:patterns, :WARP_LANES].astype(np.int64), 0)
        return WarpTrace(
            warps_per_block,
            blocks,
            weight,
            executed,
            threads,
            record_start,
            self.record_pc[:records][order],
            self.record_pattern[:records][order],
            self.record_base[:records][order],
            pc_start,
            pc,
            Patterns(offsets, mask),
        )


def _doubled(array: NDArray) -> NDArray:
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(cache=True)
def _group(keys, groups):  # type: ignore[no-untyped-def]
    """Stable order that sorts `keys` (0 .. groups - 1), and where each group starts."""
    start = np.zeros(groups + 1, np.int64)
    for key in keys:
        start[key + 1] += 1
    for g in range(groups):
        start[g + 1] += start[g]
    at = start[:-1].copy()
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        order[at[keys[i]]] = i
        at[keys[i]] += 1
    return order, start


@njit(cache=True)
def _join(pc, segment_warp, segment_start, segment_stop, warps):  # type: ignore[no-untyped-def]
    """Concatenate each warp's segments of the instruction stream."""
    start = np.zeros(warps + 1, np.int64)
    for s in range(len(segment_warp)):
        start[segment_warp[s] + 1] += segment_stop[s] - segment_start[s]
    for w in range(warps):
        start[w + 1] += start[w]
    at = start[:-1].copy()
    out = np.empty(start[warps], np.int32)
    for s in range(len(segment_warp)):
        w = segment_warp[s]
        length = segment_stop[s] - segment_start[s]
        for i in range(length):  # a loop: slice assignment costs numba seconds to compile
            out[at[w] + i] = pc[segment_start[s] + i]
        at[w] += length
    return out, start
