"""The SM as one compiled call, with the interface of `gemmsim.sm.core.Core`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.native.function import NativeFunction
from gemmsim.sm.code import Issue, Reason
from gemmsim.sm.compiled.layout import DATA, State
from gemmsim.sm.memory_path import Rates
from gemmsim.sm.streams import WarpStream
from gemmsim.sm.totals import Totals

_ROOM = 256  # entries of the lists that have no bound of their own; more where that was too few


@cache
def simulator() -> NativeFunction:
    """`loop.run` compiled: called with the address of a record `layout.SM`. Files beside this folder hold constants
    that are compiled into it."""
    here = Path(__file__).resolve().parent
    sources = (
        *sorted(here.glob("*.py")),
        *sorted(here.parent.glob("*.py")),
        here.parents[1] / "native" / "numba_parts.py",
    )
    return NativeFunction("gemmsim.sm.compiled.loop", "run", sources)


class CompiledCore:
    """The SM. `run` simulates the blocks given, `resident` at once."""

    def __init__(self, table: tuple[Issue, ...], gpu: GpuSpec, rates: Rates, oldest_block_first: bool = True) -> None:
        self._table, self._gpu, self._rates, self._oldest_block_first = table, gpu, rates, oldest_block_first
        self.snapshots: list[Totals] = []

    def run(self, blocks: Sequence[Sequence[WarpStream]], resident: int, marks: Sequence[int] = ()) -> Totals:
        """See `Core.run`."""
        room = _ROOM
        while True:
            state = State(self._table, self._gpu, self._rates, self._oldest_block_first, blocks, resident, marks, room)
            simulator()(state.address)
            if not state.sm["full"][0]:
                break
            room *= 4
        for k in range(int(state.sm["marks_taken"][0])):
            mark = state.marks[k]
            counted = state.mark_stalls[k], state.mark_executed[k], state.mark_pipes[k]
            self.snapshots.append(self._totals(float(mark["cycles"]), np.zeros(0), *counted, float(mark["data"])))
        ends = np.sort(state.block_ends[: state.sm["ended"][0]]).astype(np.float64)
        counted = state.stalls, state.rows["executed"], state.pipe_issued
        return self._totals(float(ends[-1]), ends, *counted, float(state.servers["busy"][DATA]))

    def _totals(
        self,
        cycles: float,
        block_ends: NDArray[np.float64],
        stall_cycles: NDArray[np.float64],
        executed: NDArray[np.int64],
        pipe_issued: NDArray[np.float64],
        data_cycles: float,
    ) -> Totals:
        stalls = stall_cycles.copy()
        stalls[:, Reason["SELECTED"]] = executed
        busy = {
            name: float(pipe_issued[:, i].sum()) * pipe.issue_interval_cycles / len(pipe_issued)
            for i, (name, pipe) in enumerate(self._gpu.pipes.items())
        }
        busy["lsu"] = data_cycles
        return Totals(cycles, stalls, executed.astype(np.float64), busy, block_ends)
