"""Notices a warp that does the same again and again while it stores to memory, as in `while (a[0] != 7) a[t] += 1`.

What it stores comes to be another number each time, but decides nothing as long as the warp does not load it where that
would decide. So the warp is looked at while it executes the slice of its program that decides (`slicing`): where that
comes back to a state, and no load of the slice reads what the program stores on the way, it does so forever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import micro, words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.endless import LONGEST_CYCLE
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.lower import MicroProgram
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.types import active_lanes
from gemmsim.trace.waiting import has_mbarriers

_ON_CHIP = (micro.SHARED, micro.LOCAL, micro.CONSTANT)


class Runs(Protocol):
    """The parts of `execute.Executor` that are used here."""

    micro: MicroProgram
    state: BlockState
    buffers: Buffers
    context: NDArray[np.uint64]
    stale: NDArray[np.uint64]

    @property
    def trace_slice(self) -> NDArray[np.uint32] | None: ...


def comes_back(executor: Runs, warp: int, step: Callable[[], int]) -> int:
    """Return after how many instructions a warp that runs alone does the same again forever; 0 where that is not known.

    The block goes on afterwards as if nobody had looked.

    step  lets the block go on, and returns its status
    """
    code, counters, state = executor.trace_slice, executor.buffers.counters, executor.state
    if code is None or has_mbarriers(executor.micro):
        return 0
    with _looking(executor, code):
        first, since = state.snapshot(), int(counters[words.RECORDS])
        place = state.warps[warp, [words.PC, words.ACTIVE]]
        for number in range(1, LONGEST_CYCLE + 1):
            executor.stale[:] = 0  # what is stored and what is read is compared below
            counters[words.BUDGET_LEFT] = 1
            if step() != words.BUDGET or counters[words.FAULT_WARP] != warp:
                return 0
            if np.array_equal(state.warps[warp, [words.PC, words.ACTIVE]], place) and all(
                map(np.array_equal, first, state.snapshot())
            ):
                return 0 if _reads_what_it_stores(executor, code, since) else number
    return 0


@contextmanager
def _looking(executor: Runs, code: NDArray[np.uint32]) -> Iterator[None]:
    """Let the executor run other code meanwhile, and bring everything back that this changes."""
    counters, context, state = executor.buffers.counters, executor.context, executor.state
    arrays: list[NDArray] = [context, executor.stale]
    arrays += [state.warps, state.registers, state.shared, state.local, state.barriers]
    before, counted = [array.copy() for array in arrays], counters.copy()
    executed = np.zeros((2, int(code[:, micro.INSTRUCTION].max()) + 1), np.int64)
    context[[words.EXECUTED_AT, words.THREADS_AT]] = [row.ctypes.data for row in executed]
    context[words.CODE_AT], context[words.STREAM] = code.ctypes.data, 0
    try:
        yield
    finally:
        counted[words.PATTERNS] = counters[words.PATTERNS]  # shapes of accesses that are known stay so
        counters[:] = counted
        for array, old in zip(arrays, before, strict=True):
            array[...] = old


def _reads_what_it_stores(executor: Runs, code: NDArray[np.uint32], since: int) -> bool:
    """Whether what has been recorded since record number `since` may have changed what a load of the slice reads."""
    buffers, records = executor.buffers, slice(since, int(executor.buffers.counters[words.RECORDS]))
    accesses = code[code[:, micro.OP] == CONTROL_NUMBER["access"]]
    space, kind = accesses[:, micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK, accesses[:, micro.ACCESS]
    left_out, kind = kind & micro.UNMOVED_BIT != 0, kind >> micro.KIND_SHIFT
    off_chip, pc = ~np.isin(space, _ON_CHIP), buffers.record_pc[records]

    def done(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which records are of some of the accesses."""
        return np.isin(pc, accesses[chosen & off_chip, micro.INSTRUCTION])

    if done(~left_out & (kind != micro.LOAD)).any():
        return True
    loads, stores = done(~left_out & (kind != micro.STORE)), done(left_out & (kind != micro.LOAD))
    patterns = buffers.known_patterns()
    size = np.zeros(int(accesses[:, micro.INSTRUCTION].max(initial=0)) + 1, np.int64)
    np.maximum.at(size, accesses[:, micro.INSTRUCTION], (accesses[:, micro.ACCESS] & micro.SIZE_MASK).astype(np.int64))

    def touched(of: NDArray[np.bool_]) -> set[int]:
        found: set[int] = set()
        for number in np.flatnonzero(of).tolist():
            pattern = buffers.record_pattern[records][number]
            lanes = active_lanes(patterns.active_mask[pattern : pattern + 1])[0]
            at = int(buffers.record_base[records][number]) + patterns.offsets_bytes[pattern][lanes]
            found.update((at[:, None] + np.arange(size[pc[number]])).reshape(-1).tolist())
        return found

    return not touched(loads).isdisjoint(touched(stores))
