"""What each warp of one SM did in each cycle: recorded by an observer of the SimPy model."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.types import RecordCost
from gemmsim.sm.drive import drive
from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.observer import Observer
from gemmsim.sm.ring import Ring, freeing, ring_of
from gemmsim.sm.share import active_sms, blocks_of_last_sm
from gemmsim.sm.spec import Rates
from gemmsim.sm.state import State
from gemmsim.sm.streams import RecordedStreams
from gemmsim.sm.units.instruction import Reason
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Launch, WarpTrace

_SELECTED = int(Reason["SELECTED"])


@dataclass(frozen=True)
class WarpStay:
    """One warp, from the cycle at which it may issue until its slot on the SM is free.

    slot, sub_partition  where on the SM it is; the warps of later blocks reuse slots
    block    its block's number: the SM's blocks are counted from 0 in the order of their start
    states   int32 [n, 4]: begin, end, reason (index into STALL_REASONS), and the static instruction that the warp waits
             to issue or issues. The rows ascend without a gap or an overlap from `start` to `end`.
    memory   int32 [m, 4]: begin, end, static instruction, index into LEVELS; in the order of their begin
    """

    slot: int
    sub_partition: int
    block: int
    start: int
    end: int
    states: NDArray[np.int32]
    memory: NDArray[np.int32]


@dataclass(frozen=True)
class Timeline:
    """One SM from its first block's start until its last warp has left, `cycles` later.

    warps     in the order of their start, then of their slots
    blocks    how many it ran, `resident` at once
    fraction  the part of each warp's instructions that was simulated, from the first on
    rings     of each block that bulk copies fill stages of shared memory for, in the order of their start
    """

    cycles: int
    warps: tuple[WarpStay, ...]
    blocks: int
    resident: int
    fraction: float = 1.0
    rings: tuple[Ring, ...] = ()


class Recorder(Observer):
    """The observer that collects a `Timeline` of one run of a `State`."""

    def __init__(self) -> None:
        self._live: dict[int, _Stay] = {}  # by slot
        self._ended: list[WarpStay] = []
        self._block_of: dict[int, int] = {}  # of each slot, the last block there
        self._asked: dict[int, dict[int, int]] = {}  # {block: {gate: cycle}}
        self._opened: dict[int, dict[int, int]] = {}

    def on_start(self, cycle: int, sub_partition: int, warp: int, block: int) -> None:
        self._block_of[warp] = block
        self._live[warp] = _Stay(cycle, sub_partition, block)

    def on_issue(self, cycle: int, sub_partition: int, warp: int, instruction: int) -> None:
        self._live[warp].states.extend((cycle, cycle + 1, _SELECTED, instruction))

    def on_stall(self, warp: int, instruction: int, reason: int, begin: int, end: int) -> None:
        if begin < end:
            self._live[warp].states.extend((begin, end, reason, instruction))

    def on_memory(self, warp: int, instruction: int, begin: int, end: int, level: int) -> None:
        self._live[warp].memory.extend((begin, end, instruction, level))

    def on_fill(self, cycle: int, warp: int, gate: int) -> None:
        if gate >= 0:
            self._asked.setdefault(self._block_of[warp], {}).setdefault(gate, cycle)

    def on_open(self, cycle: int, warp: int, gate: int) -> None:
        self._opened.setdefault(self._block_of[warp], {})[gate] = cycle

    def on_end(self, cycle: int, warp: int) -> None:
        stay = self._live.pop(warp)
        states, memory = _rows(stay.states), _rows(stay.memory)
        self._ended.append(WarpStay(warp, stay.sub_partition, stay.block, stay.start, cycle, states, memory))

    def rings(self, mbarriers: Sequence[NDArray[np.int64]], frees: Sequence[dict[int, int]]) -> tuple[Ring, ...]:
        """Return the rings of the blocks; call this after the run.

        mbarriers, frees  for each block, the mbarrier of each of its gates, and what `freeing` returns
        """
        found = []
        for block, asked in sorted(self._asked.items()):
            end = max(stay.end for stay in self._ended if stay.block == block)
            found.append(ring_of(block, mbarriers[block], asked, self._opened.get(block, {}), frees[block], end))
        return tuple(ring for ring in found if ring is not None)

    def timeline(self, blocks: int, resident: int, fraction: float, rings: tuple[Ring, ...] = ()) -> Timeline:
        """Return what has been recorded; call this after the run.

        The arguments are fields of `Timeline`, which the recorder does not know. Raises GemmsimError where no warp ran.
        """
        if not self._ended:
            raise GemmsimError("no timeline: no warp executes anything")
        warps = tuple(sorted(self._ended, key=lambda stay: (stay.start, stay.slot)))
        return Timeline(max(stay.end for stay in warps), warps, blocks, resident, fraction, rings)


class _Stay:
    def __init__(self, start: int, sub_partition: int, block: int) -> None:
        self.start, self.sub_partition, self.block = start, sub_partition, block
        self.states, self.memory = array("i"), array("i")


def _rows(values: array[int]) -> NDArray[np.int32]:
    rows = np.array(values, np.int32).reshape(-1, 4)
    return rows[np.argsort(rows[:, 0], kind="stable")]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of an SM's work is recorded.

    blocks            how many blocks, from the first on; None: as many as the SM holds at once
    max_instructions  how many warp instructions; where there are more, each warp is cut after the same part of its own
    """

    blocks: int | None = None
    max_instructions: int = 150_000


def record(
    program: Program,
    launch: Launch,
    trace: WarpTrace,
    cost: RecordCost,
    gpu: GpuSpec,
    clock_hz: float,
    most_resident: int,
    extent: Extent,
) -> Timeline:
    """Simulate the first blocks of the busiest SM, which holds `most_resident` at once, and record them.

    Raises GemmsimError for more blocks than that SM gets.
    """
    share = trace.shares[0] if trace.shares else None
    per_sm = blocks_of_last_sm(launch.blocks, share, gpu)
    resident = min(most_resident, per_sm)
    wanted = resident if extent.blocks is None else extent.blocks
    if wanted < 1:
        raise GemmsimError(f"--blocks {wanted} must be at least 1")
    if wanted > per_sm:
        raise GemmsimError(
            f"{wanted} blocks cannot be shown: the busiest SM of {gpu.name} runs {per_sm} of this launch"
        )
    table = instruction_table(program, gpu)
    streams = RecordedStreams(program, table, trace, cost)
    recorded = streams.blocks.tolist()
    order = range(len(recorded)) if share is None else streams.rows(share.blocks).tolist()
    rows = [order[number % len(order)] for number in range(wanted)]
    chosen = [recorded[row] for row in rows]
    lengths = {warp: len(streams.pcs(warp)) for block in chosen for warp in block}
    total = sum(lengths[warp] for block in chosen for warp in block)
    fraction = min(1.0, extent.max_instructions / total) if total else 1.0
    parts = {warp: [(0, math.ceil(length * fraction))] for warp, length in lengths.items()}
    pieces = [streams.cut(warps, parts) for warps in recorded]
    recorder = Recorder()
    rates = Rates.share(gpu, active_sms(launch.blocks, share, gpu), clock_hz)
    shown = [pieces[row] for row in rows]
    drive(State(table, gpu, rates, shown, resident, watched=True), "simpy", recorder)
    mbarriers = {row: streams.mbarriers(recorded[row], parts) for row in set(rows)}
    frees = {row: freeing(program, trace, recorded[row]) for row in set(rows)}
    rings = recorder.rings([mbarriers[row] for row in rows], [frees[row] for row in rows])
    return recorder.timeline(wanted, resident, fraction, rings)
