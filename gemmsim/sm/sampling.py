"""Simulating blocks within a budget of instructions: in full, with loops cut short, or only their beginning."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmsim.gpu.spec import GpuSpec
from gemmsim.sm.code import Issue
from gemmsim.sm.core import Core, Observer, Totals
from gemmsim.sm.loops import Loop, find_loop, without_middle
from gemmsim.sm.memory_path import Rates
from gemmsim.sm.streams import Streams

LEAST_MIDDLE = 2  # iterations whose cost is measured: fewer are taken for no steady state

Parts = dict[int, list[tuple[int, int]]]  # warp of the trace -> parts [start, stop) of its stream to simulate


@dataclass(frozen=True, slots=True)
class _Cut:
    """Of `count` iterations of each warp's main loop (more in some warps) one simulation keeps `ends`, and another
    `ends` + `middle`."""

    loops: dict[int, Loop]
    count: int
    ends: int
    middle: int


class Simulator:
    """Runs blocks of a trace on one SM and keeps count of what it simulated; `notes` says what it did not."""

    def __init__(
        self,
        table: tuple[Issue, ...],
        gpu: GpuSpec,
        streams: Streams,
        clock_hz: float,
        observer: Observer | None,
        youngest_first: bool = False,
    ) -> None:
        self._table, self._gpu, self._streams, self._clock_hz = table, gpu, streams, clock_hz
        self._observer, self._youngest_first = observer, youngest_first
        self._loops: dict[int, Loop | None] = {}
        self.simulated_instructions = 0
        self.simulated_cycles = 0.0
        self.notes: list[str] = []

    def instructions(self, blocks: int) -> int:
        """Warp instructions that `blocks` blocks execute in full."""
        return sum(self._length(warp) for block in self._pick(blocks) for warp in block)

    def fits(self, blocks: int, budget: int) -> bool:
        """Whether `run` simulates `blocks` blocks in full, or at least with their loops cut."""
        total = self.instructions(blocks)
        return total <= budget or self._cut(self._pick(blocks), total, budget) is not None

    def run(self, blocks: int, resident: int, active_sms: int, budget: int) -> Totals:
        """Totals of an SM that runs `blocks` blocks, `resident` at a time, simulating at most `budget` instructions.

        Within the budget: simulated in full. Else middle iterations of each warp's main loop are left out, once more
        and once fewer of them, and the difference, the cost of iterations in the steady state, is counted for all that
        were left out. Without such a loop the beginning of each warp is simulated and scaled by instructions.
        """
        chosen = self._pick(blocks)
        total = self.instructions(blocks)
        if total <= budget:
            return self._simulate(chosen, resident, active_sms, {})
        cut = self._cut(chosen, total, budget)
        if cut is None:
            return self._prefix(chosen, resident, active_sms, budget / total)
        short = self._simulate(chosen, resident, active_sms, self._parts(cut, 0))
        long = self._simulate(chosen, resident, active_sms, self._parts(cut, cut.middle))
        left_out = cut.count - cut.ends - cut.middle
        self.notes.append(
            f"{left_out} of {cut.count} iterations of the main loop extrapolated from {cut.middle} in its middle "
            f"({resident} blocks)"
        )
        result = long.plus(long.plus(short, -1.0), left_out / cut.middle)
        # The slope of a rare reason may be slightly negative: no stall lasts less than nothing.
        return replace(result, stall_cycles=result.stall_cycles.clip(min=0.0))

    def _pick(self, blocks: int) -> list[list[int]]:
        recorded = self._streams.blocks.tolist()
        return [recorded[i % len(recorded)] for i in range(blocks)]

    def _length(self, warp: int) -> int:
        return len(self._streams.pcs(warp))

    def _cut(self, blocks: list[list[int]], total: int, budget: int) -> _Cut | None:
        """The largest cut whose two simulations fit the budget; None where there is none."""
        warps = [warp for block in blocks for warp in block]
        for warp in set(warps) - self._loops.keys():
            self._loops[warp] = find_loop(self._streams.pcs(warp))
        looping = {warp: loop for warp in warps if (loop := self._loops[warp]) is not None}
        if not looping:
            return None
        count = min(loop.count for loop in looping.values())
        an_iteration = sum(looping[warp].length for warp in warps if warp in looping)
        outside = total - count * an_iteration  # executed whatever is cut
        affordable = (budget - 2 * outside) // an_iteration  # of both simulations: 2 x ends + middle
        if affordable < LEAST_MIDDLE:
            return None
        # A loop over one element a step touches a new line every 32 iterations (4-byte elements), one that the compiler
        # unrolled by 4 every 8: the middle covers whole periods, as long a one as the budget has room for.
        room = max(LEAST_MIDDLE, affordable // 2)
        period = next(p for p in (32, 16, 8, 4, 2) if p <= room)
        middle = room // period * period
        ends = (affordable - middle) // 2
        return _Cut(looping, count, ends, middle) if ends + middle < count else None

    def _parts(self, cut: _Cut, middle: int) -> Parts:
        # The same number of iterations is left out everywhere: warps that loop longer keep more of them at the ends.
        return {
            warp: without_middle(loop, self._length(warp), loop.count - cut.count + cut.ends, middle)
            for warp, loop in cut.loops.items()
        }

    def _prefix(self, blocks: list[list[int]], resident: int, active_sms: int, fraction: float) -> Totals:
        warps = [warp for block in blocks for warp in block]
        parts: Parts = {warp: [(0, int(self._length(warp) * fraction))] for warp in warps}
        kept = sum(stop for warp in warps for _, stop in parts[warp])
        self.notes.append(
            "no steady loop that fits the budget of instructions: "
            f"the first {100 * fraction:.2g} % of each warp simulated and scaled by instructions"
        )
        total = sum(self._length(warp) for warp in warps)
        return self._simulate(blocks, resident, active_sms, parts).scaled(total / kept)

    def _simulate(self, blocks: list[list[int]], resident: int, active_sms: int, parts: Parts) -> Totals:
        streams = {
            warp: self._streams.kept(warp, parts.get(warp, [(0, self._length(warp))]))
            for warp in {warp for block in blocks for warp in block}
        }
        core = Core(
            self._table,
            self._gpu,
            Rates.share(self._gpu, active_sms, self._clock_hz),
            self._observer,
            self._youngest_first,
        )
        totals = core.run([[streams[warp] for warp in block] for block in blocks], resident)
        self.simulated_instructions += int(totals.issued.sum())
        self.simulated_cycles += totals.cycles
        return totals
