"""Simulates blocks within a budget of instructions: in full, with their loops cut short, or only their beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.sm.drive import drive, engine_for
from gemmsim.sm.instructions import InstructionTable
from gemmsim.sm.loops import Loop, without_middle
from gemmsim.sm.observer import Observer
from gemmsim.sm.spec import USUAL, Conditions, Rates
from gemmsim.sm.state import State
from gemmsim.sm.streams import RecordedStreams, WarpStream
from gemmsim.sm.totals import Totals
from gemmsim.support.plurals import plural
from gemmsim.trace.types import SmShare

ENDS = 2  # iterations of a cut loop that are simulated with the rest of the block: the first and the last
_MIXING = 0.6180339887498949  # multiples of the golden section are spread evenly between whole numbers
_DONE = 1e-9  # iterations; fewer than these are a rounding error
LEAST_STEADY = 4  # this many iterations in a row show what one costs in the steady state

Parts = dict[int, list[tuple[int, int]]]  # warp of the trace -> parts [start, stop) of its stream to simulate


@dataclass(frozen=True, slots=True)
class _Cut:
    """How the main loops of warps are cut, so that only some of their iterations are simulated.

    loops     the main loop of each warp that has one, by the warp's row in the trace
    left_out  how many iterations are left out of each of these loops
    steady    how many iterations are simulated in a row, to find what one costs in the steady state
    """

    loops: dict[int, Loop]
    left_out: dict[int, int]
    steady: int

    @property
    def most_left_out(self) -> int:
        return max(self.left_out.values())

    @property
    def measured(self) -> int:
        """How many iterations in the middle of the `steady` ones are measured.

        They make whole periods: a loop over one element a step touches a new line every 32 iterations (4-byte
        elements), and one that the compiler unrolled by 4 every 8. The iterations before the measured ones do not
        count, because blocks that started together have not reached the steady state by then.
        """
        return next(period for period in (32, 16, 8, 4, 2, 1) if period <= self.steady // 2)


class Simulator:
    """Runs blocks of a trace on one SM and keeps count of what it simulated; `notes` says what it did not.

    share   what this SM executes, where blocks have unequal work
    engine  the engine that is wanted, one of `drive.ENGINES`; after `run` the one that it chose, "simpy" or "native"
    """

    def __init__(
        self,
        table: InstructionTable,
        gpu: GpuSpec,
        streams: RecordedStreams,
        clock_hz: float,
        *,
        observer: Observer | None = None,
        engine: str = "auto",
        share: SmShare | None = None,
        conditions: Conditions = USUAL,
    ) -> None:
        self._table, self._gpu, self._streams, self._clock_hz = table, gpu, streams, clock_hz
        self._observer, self._conditions = observer, conditions
        self.engine = engine
        self._dealt = None if share is None else streams.rows(share.blocks)
        self._picked: dict[int, list[list[int]]] = {}
        self.simulated_instructions = 0
        self.simulated_cycles = 0.0
        self.notes: list[str] = []

    def instructions(self, blocks: int) -> int:
        """Return how many warp instructions `blocks` blocks execute from their beginning to their end."""
        return sum(map(self.length, self.pick(blocks)))

    def length(self, block: list[int]) -> int:
        """Return how many warp instructions a block of `pick` executes."""
        return sum(self._streams.lengths[block[0] : block[-1] + 1])  # the warps of a block follow one another

    def fits(self, blocks: int, resident: int, budget: int) -> bool:
        """Return whether `run` simulates `blocks` blocks in full, or at least with their loops cut."""
        total = self.instructions(blocks)
        return total <= budget or self._cut(self.pick(blocks), resident, budget) is not None

    def run(self, blocks: int, resident: int, active_sms: int, last_active_sms: int, budget: int) -> Totals:
        """Return the totals of an SM that runs `blocks` blocks, `resident` at a time, while `active_sms` SMs share L2
        and DRAM. At most `budget` warp instructions are simulated.

        Blocks that fit the budget are simulated in full. Else the main loop of each warp is cut to its first and last
        iteration, and the cost of one iteration of all resident warps in the steady state is added for each iteration
        left out. Where the last blocks are fewer than `resident`, their iterations are measured with so few blocks,
        while `last_active_sms` SMs share L2 and DRAM; where blocks have unequal work, those with most are measured,
        `resident` of them together and one alone, and what is returned is of all the SM's blocks. Where no loops can be
        cut to fit the budget, the beginning of each warp is simulated and scaled by instructions.
        """
        chosen = self.pick(blocks)
        total = self.instructions(blocks)
        self.engine = engine_for(self.engine, min(total, budget), self._observer is not None)
        if total <= budget and self._whole(chosen):
            return self._simulate(chosen, resident, active_sms, {})
        cut = self._cut(chosen, resident, budget)
        if cut is None:
            return self._prefix(chosen, resident, active_sms, budget / total)
        iteration = self._iteration(self._together(chosen, resident), resident, active_sms, cut)
        short = self._simulate(chosen, resident, active_sms, self._parts(cut))
        left_out = cut.most_left_out
        self.notes.append(
            f"{left_out} of {left_out + ENDS} iterations of the main loop extrapolated from {cut.measured} in its "
            f"steady state ({plural(resident, 'block')})"
        )
        if self._dealt is not None:
            alone = self._iteration(self._together(chosen, 1), 1, active_sms, cut)
            every = self.pick(len(self._dealt))
            each = [max(cut.left_out.get(warp, 0) for warp in block) for block in every]
            lengths = [sum(self._cut_length(warp, cut) for block in some for warp in block) for some in (every, chosen)]
            short = replace(short.scaled(lengths[0] / lengths[1]), block_ends=np.zeros(len(every)))
            return _with_iterations_of_each(short, each, iteration, alone, resident)
        last = blocks % resident
        of_last = self._iteration(chosen[-last:], last, last_active_sms, cut) if last else iteration
        return _with_iterations(short, iteration.scaled(left_out), of_last.scaled(left_out), resident)

    def pick(self, blocks: int) -> list[list[int]]:
        """Choose `blocks` blocks, each a list of its warps.

        Where it is known what the SM executes, all of it is chosen, or blocks at even distances of it. These come in
        mixed order: where each has more to do than the one before, a few of them would not show how quick they are.
        Else recorded blocks that stand for equally many others come in turn, so that the last recorded one comes last:
        the last block of a column of the grid has most to do, because it adds up what the others found (split-K), and
        the busiest SM gets it. Else each block comes as often as its share of the grid asks for.
        """
        if blocks not in self._picked:
            self._picked[blocks] = self._pick(blocks)
        return self._picked[blocks]

    def _pick(self, blocks: int) -> list[list[int]]:
        recorded, weight = self._streams.blocks.tolist(), self._streams.weight
        if self._dealt is not None:
            places = ((np.arange(blocks) + 0.5) / blocks * len(self._dealt)).astype(np.int64)
            if blocks < len(self._dealt):
                places = places[np.argsort(np.arange(blocks) * _MIXING % 1)]
            return [recorded[row] for row in self._dealt[places]]
        if (weight == weight[0]).all() or blocks <= len(recorded):
            return [recorded[(i - blocks) % len(recorded)] for i in range(blocks)]
        share, given, chosen = (weight / weight.sum()).tolist(), [0] * len(weight), []
        for number in range(1, blocks + 1):  # an SM may get thousands
            due = [part * number - had for part, had in zip(share, given, strict=True)]
            most_due = due.index(max(due))
            given[most_due] += 1
            chosen.append(recorded[most_due])
        return chosen

    def _whole(self, blocks: list[list[int]]) -> bool:
        """Whether the trace recorded all that the warps of these blocks execute."""
        return all(self._streams.lengths[warp] == self._streams.recorded[warp] for block in blocks for warp in block)

    def _cut(self, blocks: list[list[int]], resident: int, budget: int) -> _Cut | None:
        """Return a cut whose simulations together fit the budget, or None where there is none.

        A cut takes two simulations: one of the blocks with their loops cut, and one of the steady state. Where the last
        blocks are fewer than `resident`, a third finds their steady state.
        """
        warps = [warp for block in blocks for warp in block]
        looping = {warp: loop for warp in warps if (loop := self._streams.loop(warp)) is not None}
        last = len(blocks) % resident if self._dealt is None else 0
        others = self._together(blocks, 1) if self._dealt is not None else blocks[-last:] if last else []
        in_steady_state = [*self._together(blocks, resident), *others]
        at_once = [warp for block in in_steady_state for warp in block if warp in looping]
        an_iteration = sum(looping[warp].length for warp in at_once)
        if not an_iteration:
            return None
        # Of blocks with equal work the same number of iterations is left out of each warp: a warp that loops longer
        # keeps more of them.
        count = min(loop.total for loop in looping.values())
        left_out = {
            w: (loop.total if self._dealt is not None or loop.total - count + ENDS > loop.count else count) - ENDS
            for w, loop in looping.items()
        }
        short = sum(self._cut_length(warp, _Cut(looping, left_out, 0)) for warp in warps)
        before = sum(looping[warp].start for warp in at_once)
        steady = min(*(looping[warp].count for warp in at_once), (budget - short - before) // an_iteration)
        cut = _Cut(looping, left_out, steady)
        return cut if steady >= LEAST_STEADY and cut.most_left_out > 0 else None

    def _cut_length(self, warp: int, cut: _Cut) -> int:
        """Return how many instructions of a warp are simulated where its loop is cut."""
        return self._streams.lengths[warp] - (cut.left_out[warp] * cut.loops[warp].length if warp in cut.loops else 0)

    def _together(self, blocks: list[list[int]], resident: int) -> list[list[int]]:
        """Return the `resident` blocks among `blocks` whose loops are measured in their steady state."""
        if self._dealt is not None:
            return sorted(blocks, key=self.length, reverse=True)[:resident]
        return blocks[:resident]

    def _parts(self, cut: _Cut) -> Parts:
        return {
            warp: without_middle(loop, self._streams.recorded[warp], loop.total - cut.left_out[warp], 0)
            for warp, loop in cut.loops.items()
        }

    def _iteration(self, blocks: list[list[int]], resident: int, active_sms: int, cut: _Cut) -> Totals:
        """Return what one iteration of all warps of the resident blocks costs in the steady state."""
        parts: Parts = {}
        before = each = 0
        for warp in (warp for block in blocks for warp in block):
            loop = cut.loops.get(warp)
            if loop is None:
                parts[warp] = []
                continue
            first = loop.start + (loop.count - cut.steady) // 2 * loop.length
            parts[warp] = [(0, loop.start), (first, first + cut.steady * loop.length)]
            before, each = before + loop.start, each + loop.length
        # As many iterations behind the measured ones do not count as before them, because warps that are ahead leave
        # the loop early.
        stop = cut.steady - max(1, (cut.steady - cut.measured) // 2)
        marks = [before + (stop - cut.measured) * each, before + stop * each]
        begin, end = self._run(blocks, resident, active_sms, parts, marks).snapshots
        return end.plus(begin, -1.0).scaled(1 / cut.measured)

    def _prefix(self, blocks: list[list[int]], resident: int, active_sms: int, fraction: float) -> Totals:
        warps = [warp for block in blocks for warp in block]
        recorded = self._streams.recorded
        parts: Parts = {warp: [(0, min(recorded[warp], int(self._streams.lengths[warp] * fraction)))] for warp in warps}
        simulated = sum(stop for warp in warps for _, stop in parts[warp])
        self.notes.append(
            "no steady loop that fits the budget of instructions: "
            f"the first {100 * fraction:.2g} % of each warp simulated and scaled by instructions"
        )
        total = sum(self._streams.lengths[warp] for warp in warps)
        return self._simulate(blocks, resident, active_sms, parts).scaled(total / simulated)

    def _simulate(self, blocks: list[list[int]], resident: int, active_sms: int, parts: Parts) -> Totals:
        return self._run(blocks, resident, active_sms, parts).totals

    def _run(
        self, blocks: list[list[int]], resident: int, active_sms: int, parts: Parts, marks: Sequence[int] = ()
    ) -> State:
        streams: dict[int, WarpStream] = {}
        for block in {tuple(block) for block in blocks}:
            streams.update(zip(block, self._streams.cut(block, parts), strict=True))
        state = State(
            self._table,
            self._gpu,
            Rates.share(self._gpu, active_sms, self._clock_hz),
            [[streams[warp] for warp in block] for block in blocks],
            resident,
            marks=marks,
            conditions=self._conditions,
            watched=self._observer is not None,
        )
        drive(state, self.engine, self._observer)
        totals = state.totals
        if state.sm.released:
            self.notes.append(
                f"{plural(state.sm.released, 'wait')} at mbarriers ended when nothing else could happen: what they "
                "waited for comes from blocks of the cluster that are not simulated, or from iterations that are left "
                "out"
            )
        self.simulated_instructions += int(totals.issued.sum())
        self.simulated_cycles += totals.cycles
        return state


def _with_iterations(short: Totals, full: Totals, last: Totals, resident: int) -> Totals:
    """Add to `short`, the totals of blocks whose loops were cut, the iterations that were left out of it.

    These cost `full` for each generation of `resident` blocks, and `last` for the blocks that remain.
    """
    blocks = len(short.block_ends)
    generations = blocks // resident
    generation = 1 + np.arange(blocks) // resident
    later = np.minimum(generation, generations) * full.cycles + (generation > generations) * last.cycles
    total = short
    for part, times in ((full, generations), (last, int(blocks > generations * resident))):
        total = total.plus(replace(part, block_ends=np.zeros(blocks)), times)
    return replace(
        total,
        block_ends=short.block_ends + later,
        # A stall is counted when it ends, so one that spans a snapshot can make a difference of two negative.
        stall_cycles=total.stall_cycles.clip(min=0.0),
    )


def _with_iterations_of_each(
    short: Totals, left_out: Sequence[int], together: Totals, alone: Totals, resident: int
) -> Totals:
    """Add to `short`, the totals of blocks whose loops were cut, the iterations that were left out of each block.

    left_out  how many iterations are left out of each block, in the order in which they begin
    together  what one iteration of each of `resident` blocks costs that run together
    alone     what an iteration of a block costs that runs alone
    """
    ends = _ends_of_loops(left_out, resident, together.cycles, alone.cycles)
    total = short.plus(replace(together, block_ends=np.zeros(len(ends))), sum(left_out) / resident)
    return replace(
        total,
        cycles=short.cycles + ends.max(),
        block_ends=np.sort(ends) + short.cycles * np.arange(1, len(ends) + 1) / len(ends),
        stall_cycles=total.stall_cycles.clip(min=0.0),
    )


def _ends_of_loops(iterations: Sequence[int], resident: int, together: float, alone: float) -> NDArray[np.float64]:
    """Return when each block has done its iterations: float64 [blocks], in cycles.

    Blocks begin in order, `resident` at a time. Where k of them run, they do k iterations in a number of cycles that
    grows from `alone` for k = 1 to `together` for k = `resident` in proportion: the oldest k times as many of them as
    the youngest, the second oldest k - 1 times, but none more than a block alone would do.
    """
    ends, now = np.zeros(len(iterations)), 0.0
    left: dict[int, float] = {}  # iterations of the blocks that run, the oldest first
    waiting = list(range(len(iterations)))[::-1]
    while left or waiting:
        while waiting and len(left) < resident:
            block = waiting.pop()
            left[block] = float(iterations[block])
        running = len(left)
        cycles = alone + (together - alone) * (running - 1) / max(1, resident - 1)
        rates = [min(1 / alone, 2 * (running - age) / (running + 1) / cycles) for age in range(running)]
        step = min(rest / rate for rest, rate in zip(left.values(), rates, strict=True))
        now += step
        after = {block: rest - step * rate for (block, rest), rate in zip(left.items(), rates, strict=True)}
        left = {block: rest for block, rest in after.items() if rest > _DONE}
        for block in after.keys() - left.keys():
            ends[block] = now
    return ends
