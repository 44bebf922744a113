"""Checks what is known of a leader that is cut: which rows it changes, and what it leaves in the trace buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from gemmsim.trace.differences import leader as leaders
from gemmsim.trace.execute import Executor
from gemmsim.trace.steady.rows import changing_rows
from gemmsim.trace.types import WarpTrace

_OF_RECORDS = ("executed", "threads_executed", "record_start", "record_pc", "record_base", "pc_start", "pc")


def check_rows(executor: Executor, leader: int) -> None:
    """Hold all rows of the registers that are said not to change against what they were when the block began, and what
    is known of them in other blocks, too, while it is related to the next block. Rows that differ there are noted."""
    code = executor.trace_slice
    assert code is not None
    others = np.ones(executor.micro.rows, np.bool_)
    others[changing_rows(executor.micro, code).begins // 32] = False
    assert np.count_nonzero(others) > len(others) // 2  # else nothing is won

    def rows(words: np.ndarray) -> np.ndarray:
        return words.reshape(len(words), -1, 32)[:, others].copy()

    executor._begin(executor.state, leader)
    before = rows(executor.state.registers)
    executor.trace([leader])
    assert np.array_equal(rows(executor.state.registers), before)
    with _tables() as made:
        leaders.relate(executor, leader, np.array([leader, (leader + 1) % executor.launch.blocks]))
    (tables,) = made
    assert np.array_equal(rows(tables.shadow), rows(tables.begun))
    assert tables.shadow.any() or executor.launch.blocks == 1
    differ = tables.shadow.reshape(len(tables.shadow), -1, 32).any(axis=2)
    assert tables.differs[differ].all() and not tables.differs.all()


@contextmanager
def _tables() -> Iterator[list]:
    """Collect the tables of leaders that are related meanwhile; `begun` is what their shadow was at first."""
    made: list = []

    class Kept(leaders.Tables):
        def __init__(self, executor: Executor, blocks: np.ndarray) -> None:
            super().__init__(executor, blocks)
            self.begun = self.shadow.copy()
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaders, "Tables", Kept)
        yield made


def check_recorded(executor: Executor, blocks: list[int]) -> None:
    """Trace leaders that have just been related, with a stream of the first one: those that were cut are not executed.
    Hold the trace against another one, for which all are."""
    streams = [number == 0 for number in range(len(blocks))]
    kept, began = set(executor.cutting.recorded), []
    assert kept == {block for block in blocks if block in executor.cutting.cuts}
    with pytest.MonkeyPatch.context() as patch:
        really = executor._begin
        patch.setattr(executor, "_begin", lambda state, block: (began.append(block), really(state, block)))
        quick = executor.trace(blocks, streams=streams)
        assert began == [block for n, block in enumerate(blocks) if not n or block not in kept]
        began.clear()
        whole = executor.trace(blocks, streams=streams)
        assert began == blocks and not executor.cutting.recorded
    for name in _OF_RECORDS:
        assert np.array_equal(getattr(quick, name), getattr(whole, name)), name
    assert np.array_equal(_accesses(quick), _accesses(whole))
    assert (quick.repeats is None) == (whole.repeats is None)
    for one, other in zip(*(_repeated(trace) for trace in (quick, whole)), strict=True):
        assert np.array_equal(one, other)
    assert (quick.syncs is None) == (whole.syncs is None)
    for one, other in zip(*(vars(trace.syncs).values() for trace in (quick, whole) if trace.syncs), strict=True):
        assert np.array_equal(one, other)


def _accesses(trace: WarpTrace) -> np.ndarray:
    """The offsets and the mask of each record."""
    p = trace.patterns
    return np.column_stack([p.offsets_bytes[trace.record_pattern], p.active_mask[trace.record_pattern]])


def _repeated(trace: WarpTrace) -> tuple[np.ndarray, ...]:
    """For how many executions each record and each instruction of a stream stands, and by how much records move."""
    repeats = trace.repeats
    if repeats is None:
        return ()
    return repeats.of_record, repeats.issued.before(np.arange(len(trace.pc) + 1)), repeats.step_bytes
