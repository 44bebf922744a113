"""From the blocks of one SM to the time of a launch: which blocks run on it, and in which waves."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.errors import GemmsimError
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.types import RecordCost
from gemmsim.sm.code import issue_table
from gemmsim.sm.core import Observer, Totals
from gemmsim.sm.sampling import Simulator
from gemmsim.sm.streams import Streams
from gemmsim.sm.types import STALL_REASONS, Timing
from gemmsim.trace.types import Launch, WarpTrace


@dataclass(frozen=True)
class TimingOptions:
    """max_instructions: warp instructions simulated in total, at most; sm_clock_hz: in place of the GPU's under load.

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
    options: TimingOptions = TimingOptions(),
) -> Timing:
    """Predicted time of `launch`, from one SM: the busiest, which gets ceil(grid blocks / SMs) blocks.

    The blocks whose instruction streams the trace recorded are run on it, repeated where they are fewer than needed.
    Where that is more than `options.max_instructions`, one wave of `resident_blocks_per_sm` blocks stands for all full
    waves, and loops are extrapolated (see `sampling`); `Timing.notes` says what was done.

    Raises GemmsimError for an opcode without a pipe, a trace without streams, or a resident count below 1.
    """
    if resident_blocks_per_sm < 1:
        raise GemmsimError(
            f"no block of '{program.name}' fits on an SM of {gpu.name}: it needs too many registers, "
            "too much shared memory or too many warps"
        )
    clock_hz = options.sm_clock_hz or gpu.clock.sm_load_hz
    table = issue_table(program, gpu)
    simulator = Simulator(table, gpu, Streams(program, table, trace, cost), clock_hz, options.observer)
    total = _total(launch.blocks, gpu, resident_blocks_per_sm, simulator, options.max_instructions)
    return _timing(total, launch.blocks / (resident_blocks_per_sm * gpu.sm.count), gpu, clock_hz, simulator)


def _total(grid_blocks: int, gpu: GpuSpec, most_resident: int, simulator: Simulator, budget: int) -> Totals:
    """What the busiest SM does: all its blocks in one simulation where the budget allows, else wave by wave."""
    per_sm = -(-grid_blocks // gpu.sm.count)
    resident = min(most_resident, per_sm)
    active_sms = min(gpu.sm.count, grid_blocks)
    if simulator.instructions(per_sm) <= budget:
        return simulator.run(per_sm, resident, active_sms, budget)
    full_waves, rest = divmod(per_sm, resident)
    wave_budget = budget * resident // (resident + rest)
    total = simulator.run(resident, resident, active_sms, wave_budget).scaled(full_waves)
    if rest:
        left = grid_blocks - full_waves * resident * gpu.sm.count
        tail = simulator.run(rest, rest, min(gpu.sm.count, left), budget - wave_budget)
        total = total.plus(tail)
    if full_waves > 1 or rest:
        last = f" + a last wave of {rest}" if rest else ""
        simulator.notes.append(f"time is {full_waves} x a wave of {resident} blocks an SM{last}")
    return total


def _timing(total: Totals, waves: float, gpu: GpuSpec, clock_hz: float, simulator: Simulator) -> Timing:
    cycles = total.cycles
    issued = float(total.issued.sum())
    by_reason = total.stall_cycles.sum(axis=0)
    return Timing(
        cycles=cycles,
        duration_us=cycles / clock_hz * 1e6 + gpu.launch.overhead_us,
        sm_clock_hz=clock_hz,
        waves=waves,
        issue_active_pct=100 * issued / (gpu.sm.sub_partitions * cycles),
        achieved_occupancy_pct=100 * float(by_reason.sum()) / cycles / gpu.sm.max_warps,
        pipe_utilisation_pct={pipe: 100 * busy / cycles for pipe, busy in total.busy_cycles.items()},
        stalls={reason: float(by_reason[i]) / issued for i, reason in enumerate(STALL_REASONS)},
        stall_samples=total.stall_cycles,
        simulated_instructions=simulator.simulated_instructions,
        simulated_cycles=simulator.simulated_cycles,
        notes=tuple(dict.fromkeys(simulator.notes)),
    )
