"""Runs a block and leaves out iterations of its steady loops, where an executor wants that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.endless import Patience
from gemmsim.trace.engine.recorded import Recorded
from gemmsim.trace.steady.proofs import Proofs
from gemmsim.trace.steady.running import Executor, Tables
from gemmsim.trace.steady.skip import Cut, Skipping
from gemmsim.trace.steady.stops import Stops


@dataclass
class Cutting:
    """What an executor knows of the iterations that it leaves out.

    allowed   whether it may leave out any
    leaders   whether the leaders of classes do
    must      whether these are to stop (UNRELATED) where they can leave out none
    again     whether a period at which a block was cut is looked for in all of its rest
    finds     whether the blocks that run now do
    enough    warp instructions after which these need not go on, where most of them were left out; None: they end
    cuts      {leader: where it left out iterations}; whenever it is executed again, it does so there
    recorded  {leader: what it left in the trace buffers}, of leaders in `cuts` that have not been traced since then
    left_out  warp instructions that the blocks of the last sketch left out
    tables    what relates other blocks to the one that runs; None where nothing does
    proofs    what is known of loops, by the address of the code that blocks run
    """

    allowed: bool
    leaders: bool = False
    must: bool = False
    again: bool = False
    finds: bool = False
    enough: int | None = None
    cuts: dict[int, list[Cut]] = field(default_factory=dict)
    recorded: dict[int, Recorded] = field(default_factory=dict)
    left_out: int = 0
    tables: Tables | None = None
    proofs: dict[int, Proofs] = field(default_factory=dict)

    def left_out_of(self, leader: int) -> int:
        """Return how many warp instructions are left out where `leader` is executed."""
        return sum(cut.unit * cut.times for cut in self.cuts.get(leader, ()))

    def forget(self) -> None:
        """Forget where leaders were cut, and what they left: they are executed in full from now on."""
        self.cuts.clear()
        self.recorded.clear()

    def take_recorded(self, blocks: Sequence[int], streams: NDArray[np.bool_]) -> dict[int, Recorded]:
        """Return what is kept of `blocks` of which no stream is wanted, by their places, and keep nothing."""
        known, self.recorded = self.recorded, {}
        return {n: known[block] for n, block in enumerate(blocks) if block in known and not streams[n]}


def run_cut(
    executor: Executor,
    block: int,
    counts: tuple[NDArray, NDArray],
    record: bool,
    patience: Patience,
    go_on: Callable[[int], int],
    recover: Callable[[int, int, BlockState], None],
) -> None:
    """Execute a block that has begun, and leave out iterations of its loops.

    Where these are not to be found, they are those that were left out before, and no results are computed. A block that
    need not go on ends at a stop.

    counts    int64 [instructions] each: executions by warps and by threads, to which the block's are added
    record    whether the block's instruction stream is recorded
    patience  lends the budget
    go_on     lets the block go on, and returns its status
    recover   does what a status asks for
    """
    cutting, counters, context = executor.cutting, executor.buffers.counters, executor.context
    usual, finds = int(context[words.CODE_AT]), cutting.finds
    recorded = int(counters[words.SEGMENTS]), int(counters[words.ISSUED]), int(counters[words.SYNCS])
    code = executor.trace_slice
    if finds and executor.count_slice is not None and usual == executor.count_slice.ctypes.data:
        code = executor.count_slice
    assert code is not None
    context[words.CODE_AT] = code.ctypes.data
    skipping = Skipping(executor, code, counts, cutting.tables)
    stops = Stops(counters, skipping.stops() if finds else skipping.replay(cutting.cuts[block], record))
    try:
        while (status := stops.run(lambda: go_on(block))) != words.FINISHED:
            if status == words.BUDGET and stops.reached():
                done = int(counts[0].sum())
                if finds and cutting.enough is not None and cutting.enough <= done < 2 * skipping.left_out:
                    break
                continue
            if status != words.BUDGET or not patience.goes_on(block, counts[0]):
                recover(status, block, executor.state)
    finally:
        context[words.CODE_AT] = usual
    cutting.left_out += skipping.left_out
    if cutting.tables is not None:
        cutting.cuts.pop(block, None)
        if skipping.cuts:
            cutting.cuts[block] = skipping.cuts
    if not record:
        executor.buffers.forget_stream(*recorded)
