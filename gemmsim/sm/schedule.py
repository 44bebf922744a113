"""From one SM's resident blocks to the time of a launch: waves, and the loop iterations that are not simulated one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gemmsim.errors import GemmsimError
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.types import RecordCost
from gemmsim.sm.code import Issue, Reason, issue_table
from gemmsim.sm.core import Core, Observer, Totals
from gemmsim.sm.loops import Loop, find_loop, without_middle
from gemmsim.sm.memory_path import Rates
from gemmsim.sm.streams import Streams, WarpStream
from gemmsim.sm.types import STALL_REASONS, Timing
from gemmsim.trace.types import Launch, WarpTrace


@dataclass(frozen=True)
class TimingOptions:
    """max_instructions: warp instructions simulated in total, at most; sm_clock_hz: instead of the GPU's clock under load.

    observer sees every instruction that is simulated (see `core.Observer`); None costs nothing.
    """

    max_instructions: int = 120_000
    sm_clock_hz: float | None = None
    observer: Observer | None = None


def schedule(
    program: Program,
    launch: Launch,
    trace: WarpTrace,
    cost: RecordCost,
    gpu: GpuSpec,
    resident_blocks_per_sm: int,
    options: TimingOptions = TimingOptions(),  # noqa: B008 - frozen
) -> Timing:
    """Predicted time of `launch`, from one SM: the busiest, which gets ceil(grid blocks / SMs) blocks.

    The blocks whose instruction streams the trace recorded are run on it, repeated where they are fewer than needed. Where
    that is more than `options.max_instructions`, whole waves of `resident_blocks_per_sm` blocks are counted instead of run
    one after another, and loops are extrapolated (see `_Simulator.run`); `Timing.notes` says what was done.

    Raises GemmsimError for an opcode without a pipe, a trace without streams, or a resident count below 1.
    """
    if resident_blocks_per_sm < 1:
        raise GemmsimError(f"no block of '{program.name}' fits on an SM of {gpu.name}: it needs more registers, shared memory or warps")
    clock_hz = options.sm_clock_hz or gpu.clock.sm_load_hz
    table = issue_table(program, gpu)
    simulator = _Simulator(table, gpu, Streams(program, table, trace, cost), clock_hz, options)
    per_sm = -(-launch.blocks // gpu.sm.count)
    resident = min(resident_blocks_per_sm, per_sm)
    active_sms = min(gpu.sm.count, launch.blocks)
    if simulator.instructions(per_sm) <= options.max_instructions:
        total = simulator.run(per_sm, resident, active_sms, options.max_instructions)
    else:
        full_waves, rest = divmod(per_sm, resident)
        budget = options.max_instructions * resident // (resident + rest)
        total = simulator.run(resident, resident, active_sms, budget).scaled(full_waves)
        if rest:
            left = launch.blocks - full_waves * resident * gpu.sm.count
            tail = simulator.run(rest, rest, min(gpu.sm.count, left), options.max_instructions - budget)
            total = total.plus(tail)
        if full_waves > 1 or rest:
            simulator.notes.append(
                f"time is {full_waves} x a wave of {resident} blocks an SM" + (f" + a last wave of {rest}" if rest else "")
            )
    return _timing(total, launch, gpu, resident_blocks_per_sm, clock_hz, simulator)


class _Simulator:
    """Runs sets of blocks within an instruction budget and keeps count of what it did."""

    def __init__(
        self, table: tuple[Issue, ...], gpu: GpuSpec, streams: Streams, clock_hz: float, options: TimingOptions
    ) -> None:
        self._table, self._gpu, self._streams, self._clock_hz = table, gpu, streams, clock_hz
        self._observer = options.observer
        self._loops: dict[int, Loop | None] = {}
        self.simulated_instructions = 0
        self.simulated_cycles = 0.0
        self.notes: list[str] = []

    def instructions(self, blocks: int) -> int:
        """Warp instructions that `blocks` blocks execute in full."""
        return sum(len(self._streams.pcs(warp)) for block in self._pick(blocks) for warp in block)

    def run(self, blocks: int, resident: int, active_sms: int, budget: int) -> Totals:
        """Totals of an SM that runs `blocks` blocks, `resident` at a time, simulating at most `budget` instructions.

        Within the budget: simulated in full. Else the middle iterations of each warp's main loop are left out, once more
        and once fewer of them, and the difference, which is the cost of iterations in the steady state, is counted for all
        that were left out. Without such a loop the beginning of each warp is simulated and scaled by instructions.
        """
        chosen = self._pick(blocks)
        total = self.instructions(blocks)
        if total <= budget:
            return self._simulate(chosen, resident, active_sms, {})
        cut = self._cut(chosen, total, budget)
        if cut is None:
            return self._prefix(chosen, resident, active_sms, budget / total)
        loops, edge, middle, count = cut
        ends = {w: loop.count - count + edge for w, loop in loops.items()}  # the same number is left out everywhere
        few = {w: without_middle(loop, self._length(w), ends[w], 0) for w, loop in loops.items()}
        more = {w: without_middle(loop, self._length(w), ends[w], middle) for w, loop in loops.items()}
        short = self._simulate(chosen, resident, active_sms, few)
        long = self._simulate(chosen, resident, active_sms, more)
        left_out = count - edge - middle
        self.notes.append(
            f"{left_out} of {count} iterations of the main loop extrapolated from {middle} in its middle ({resident} blocks)"
        )
        result = long.plus(long.plus(short, -1.0), left_out / middle)
        # The slope of a rare reason may be slightly negative: no stall lasts less than nothing.
        return Totals(result.cycles, result.stall_cycles.clip(min=0.0), result.issued, result.busy_cycles)

    def _pick(self, blocks: int) -> list[list[int]]:
        recorded = self._streams.blocks.tolist()
        return [recorded[i % len(recorded)] for i in range(blocks)]

    def _length(self, warp: int) -> int:
        return len(self._streams.pcs(warp))

    def _cut(self, blocks: list[list[int]], total: int, budget: int) -> tuple[dict[int, Loop], int, int, int] | None:
        """(main loop a warp, iterations kept at its ends, iterations kept in the middle, iterations) that fit the budget."""
        warps = [warp for block in blocks for warp in block]
        for warp in warps:
            if warp not in self._loops:
                self._loops[warp] = find_loop(self._streams.pcs(warp))
        looping = {warp: loop for warp in warps if (loop := self._loops[warp]) is not None}
        if not looping:
            return None
        count = min(loop.count for loop in looping.values())
        an_iteration = sum(looping[warp].length for warp in warps if warp in looping)
        outside = total - count * an_iteration  # executed whatever is cut: cuts go up to the shortest loop
        affordable = (budget - 2 * outside) // an_iteration  # both simulations together: edge, and edge + middle
        if affordable < 5:
            return None
        # One-element steps touch a new line every 32 iterations (4-byte elements): cover that period, or a half of it.
        middle = next(m for m in (32, 16, 8, 4, 2, 1) if 2 * m <= affordable or m == 1)
        middle *= max(1, affordable // 2 // middle)
        edge = (affordable - middle) // 2
        if edge + middle >= count:
            return None
        return looping, edge, middle, count

    def _prefix(self, blocks: list[list[int]], resident: int, active_sms: int, fraction: float) -> Totals:
        parts = {warp: [(0, int(self._length(warp) * fraction))] for block in blocks for warp in block}
        kept = sum(parts[warp][0][1] for block in blocks for warp in block)
        total = sum(self._length(warp) for block in blocks for warp in block)
        self.notes.append(
            f"no steady loop that fits the budget: the first {100 * fraction:.2g} % of each warp simulated and scaled by instructions"
        )
        return self._simulate(blocks, resident, active_sms, parts).scaled(total / kept)

    def _simulate(
        self, blocks: list[list[int]], resident: int, active_sms: int, parts: dict[int, list[tuple[int, int]]]
    ) -> Totals:
        streams: dict[int, WarpStream] = {}
        for warp in {warp for block in blocks for warp in block}:
            streams[warp] = self._streams.kept(warp, parts.get(warp, [(0, self._length(warp))]))
        core = Core(self._table, self._gpu, Rates.share(self._gpu, active_sms, self._clock_hz), self._observer)
        totals = core.run([[streams[warp] for warp in block] for block in blocks], resident)
        self.simulated_instructions += int(totals.issued.sum())
        self.simulated_cycles += totals.cycles
        return totals


def _timing(
    total: Totals, launch: Launch, gpu: GpuSpec, resident: int, clock_hz: float, simulator: _Simulator
) -> Timing:
    cycles = total.cycles
    issued = float(total.issued.sum())
    by_reason = total.stall_cycles.sum(axis=0)
    return Timing(
        cycles=cycles,
        duration_us=cycles / clock_hz * 1e6 + gpu.launch.overhead_us,
        sm_clock_hz=clock_hz,
        waves=launch.blocks / (resident * gpu.sm.count),
        issue_active_pct=100 * issued / (gpu.sm.sub_partitions * cycles),
        achieved_occupancy_pct=100 * float(by_reason.sum()) / cycles / gpu.sm.max_warps,
        pipe_utilisation_pct={pipe: 100 * busy / cycles for pipe, busy in total.busy_cycles.items()},
        stalls={reason: float(by_reason[i]) / issued for i, reason in enumerate(STALL_REASONS)},
        stall_samples=total.stall_cycles,
        simulated_instructions=simulator.simulated_instructions,
        simulated_cycles=simulator.simulated_cycles,
        notes=tuple(dict.fromkeys(simulator.notes)),
    )
