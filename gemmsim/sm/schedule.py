"""Predicts the time of a launch from a few blocks on one SM: chooses how many, and infers the time of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.memory.types import RecordCost
from gemmsim.sm.budget import Simulator
from gemmsim.sm.clock import duration_s
from gemmsim.sm.dram_time import dram_seconds
from gemmsim.sm.instructions import instruction_table, lowers_clock
from gemmsim.sm.observer import Observer
from gemmsim.sm.share import active_sms, blocks_of_last_sm
from gemmsim.sm.spec import Conditions
from gemmsim.sm.streams import RecordedStreams
from gemmsim.sm.totals import Totals
from gemmsim.sm.types import STALL_REASONS, Timing
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural
from gemmsim.trace.types import Launch, SmShare, WarpTrace

# How many generations of resident blocks are simulated: the first of these that the budget allows. The blocks of the
# first generation start together; later ones drift apart, and the loads of one overlap with the arithmetic of another.
GENERATIONS = (4, 3, 2, 1)


@dataclass(frozen=True)
class TimingOptions:
    """How a launch is timed.

    max_instructions  how many warp instructions are simulated at most, in total
    sm_clock_hz     the clock to use in place of the one that the GPU runs at under load
    math_behind_barriers  whether arithmetic goes on where a warp waits at a barrier (`Pipe.passes_barrier`)
    register_ports  whether operands compete for the ports of the register file (see `units.register_ports`)
    oldest_block_first  whether warps of the oldest block go first (see `units.scheduler`); else, of the warps that can
                    issue, the one that issued longest ago goes first
    warm_code       whether the instruction caches hold the code as a launch of the same kernel has left it
    engine          which drive runs: "simpy", "native", or "auto" for SimPy where it takes about 0.2 s at most
    observer        sees every instruction that is simulated (see `observer.Observer`); None costs nothing
    """

    max_instructions: int = 1_000_000
    sm_clock_hz: float | None = None
    observer: Observer | None = None
    register_ports: bool = True
    math_behind_barriers: bool = True
    oldest_block_first: bool = True
    engine: str = "auto"
    warm_code: bool = False


def schedule(
    program: Program,
    launch: Launch,
    trace: WarpTrace,
    cost: RecordCost,
    gpu: GpuSpec,
    resident_blocks_per_sm: int,
    options: TimingOptions = TimingOptions(),
    recorded: Callable[[], RecordedStreams] | None = None,
) -> Timing:
    """Predict the time of `launch` from one SM, the one that ends last. It gets the blocks of one of `trace.shares` or,
    where all SMs do about the same, ceil(grid blocks / SMs) blocks or, where they end together, a few more (`_total`).

    The blocks whose instruction streams the trace recorded are run on it, repeated where they are fewer than needed.
    Where that is more than `options.max_instructions`, the first few stand for all, and loops are cut short (see
    `budget`); `Timing.notes` says what was done.

    recorded  returns what `recorded_streams` makes of the same arguments, for a launch that is timed several times

    Raises GemmsimError for an opcode without a pipe, a trace without streams, or a resident count below 1.
    """
    if resident_blocks_per_sm < 1:
        raise GemmsimError(
            f"no block of '{program.name}' fits on an SM of {gpu.name}: it needs too many registers, "
            "too much shared memory or too many warps"
        )
    table = instruction_table(program, gpu, options.register_ports, options.math_behind_barriers)
    clock_hz = options.sm_clock_hz or _clock_hz(program, trace, gpu)
    streams = recorded() if recorded else RecordedStreams(program, table, trace, cost)
    budget, candidates = options.max_instructions, []
    for share in trace.shares or (None,):
        simulator = Simulator(
            table,
            gpu,
            streams,
            clock_hz,
            observer=options.observer,
            engine=options.engine,
            share=share,
            conditions=Conditions(options.oldest_block_first, options.warm_code),
        )
        total = _total(launch.blocks, share, gpu, resident_blocks_per_sm, simulator, budget)
        candidates.append((total, simulator))
    total, simulator = max(candidates, key=lambda one: one[0].cycles)
    dram_cycles = clock_hz * dram_seconds(table, trace, cost, gpu)
    if dram_cycles > total.cycles:
        simulator.notes.append("DRAM takes longer to write what the launch stores than the SMs work")
        total = replace(total, cycles=dram_cycles)
    waves = launch.blocks / (resident_blocks_per_sm * gpu.sm.count)
    seconds = total.cycles / options.sm_clock_hz if options.sm_clock_hz else duration_s(total, gpu.clock)
    return _timing(total, waves, resident_blocks_per_sm * launch.warps_per_block, gpu, seconds, simulator)


def _clock_hz(program: Program, trace: WarpTrace, gpu: GpuSpec) -> float:
    """The SM clock of most of a launch, at which it is simulated: matrix instructions lower it (see `duration_s`)."""
    lowers = [lowers_clock(instruction) for instruction in program.instructions]
    return gpu.clock.sm_tensor_load_hz if trace.executed[:, lowers].any() else gpu.clock.sm_load_hz


def _total(
    grid_blocks: int, share: SmShare | None, gpu: GpuSpec, most_resident: int, simulator: Simulator, budget: int
) -> Totals:
    """Return the totals of the SM that ends last, from one simulation: of all its blocks where the budget allows, else
    of some of them.

    Each SM gets one of the last blocks in turn. But where those of its first generation end together, it gets as many
    as it has room for: all their places are free before those of other SMs are (own microbenchmark on an H200,
    tests/records/h200_last_blocks.json).
    """
    per_sm = blocks_of_last_sm(grid_blocks, share, gpu)
    resident = min(most_resident, per_sm)
    total, blocks = _simulated(grid_blocks, per_sm, resident, share, gpu, simulator, budget)
    rest, left = per_sm % resident, grid_blocks - per_sm // resident * resident * gpu.sm.count
    simulated_in_full = not simulator.notes  # else it is not known how far blocks get ahead of each other
    if (
        share is None
        and simulated_in_full
        and 0 < rest < min(resident, left)
        and _apart(total, resident) < gpu.launch.together_share
    ):
        per_sm += min(resident, left) - rest
        total, blocks = _simulated(grid_blocks, per_sm, resident, share, gpu, simulator, budget)
    if len(total.block_ends) < per_sm:
        simulator.notes.append(
            f"{plural(per_sm, 'block')} an SM, {resident} at once: {blocks} simulated, the others take as long as they"
        )
    if share is None:
        return total if blocks == per_sm else _continued(total, np.ones(blocks), per_sm, resident)
    simulator.notes.append(f"blocks have unequal work; the SM that ends last gets {per_sm} of them")
    blocks = len(total.block_ends)
    simulated = np.array([simulator.length(block) for block in simulator.pick(blocks)], np.float64)
    return _continued(total, simulated, float(share.work.sum()), resident)


def _apart(total: Totals, resident: int) -> float:
    """Return how long after the first of the blocks that begin together the last one ends, as a share of what the first
    takes."""
    ends = total.block_ends[:resident]
    return float(np.ptp(ends) / ends.min())


def _simulated(
    grid_blocks: int, per_sm: int, resident: int, share: SmShare | None, gpu: GpuSpec, simulator: Simulator, budget: int
) -> tuple[Totals, int]:
    """Return the totals of as many of an SM's `per_sm` blocks as the budget allows, `resident` at a time, and how many
    these are."""
    choices = (min(per_sm, generations * resident + per_sm % resident) for generations in GENERATIONS)
    sizes = [per_sm] if simulator.instructions(per_sm) <= budget else list(choices)
    blocks = next((size for size in sizes if simulator.fits(size, resident, budget)), sizes[-1])
    left = grid_blocks - (per_sm - per_sm % resident) * gpu.sm.count  # blocks of the last, incomplete generation
    active, last_active = active_sms(grid_blocks, share, gpu), min(max(left, 1), gpu.sm.count)
    return simulator.run(blocks, resident, active, last_active, budget), blocks


def _continued(first: Totals, simulated: NDArray[np.float64], work: float, resident: int) -> Totals:
    """Extend `first`, the totals of some of an SM's blocks, to all its blocks, which start as others leave, `resident`
    at a time.

    In between, a generation takes as long as it did after the first one had left and before the last one ran dry, in
    proportion to its work. All else grows with the work.

    simulated  float64 [blocks]: the work of the blocks of `first`, in any unit
    work       that of all blocks, in that unit
    """
    ends, done = first.block_ends, np.cumsum(simulated)
    generations = len(ends) // resident
    if generations < 3:
        last = generations * resident - 1
        of_one = ends[last] / done[last]
    else:  # between two moments at which as many blocks are under way
        last = (generations - 1) * resident - 1
        of_one = (ends[last] - ends[resident - 1]) / (done[last] - done[resident - 1])
    cycles = first.cycles + (work - done[-1]) * of_one
    return replace(first.scaled(work / done[-1]), cycles=float(cycles))


def _timing(
    total: Totals, waves: float, resident_warps: int, gpu: GpuSpec, seconds: float, simulator: Simulator
) -> Timing:
    cycles = total.cycles
    issued = float(total.issued.sum())
    by_reason = total.stall_cycles.sum(axis=0)
    return Timing(
        cycles=cycles,
        duration_us=seconds * 1e6 + gpu.launch.overhead_us,
        sm_clock_hz=cycles / seconds,
        waves=waves,
        issue_active_pct=100 * issued / (gpu.sm.sub_partitions * cycles),
        # What is extrapolated may exceed what fits.
        achieved_occupancy_pct=100 * min(float(by_reason.sum()) / cycles, resident_warps) / gpu.sm.max_warps,
        pipe_utilisation_pct={pipe: 100 * busy / cycles for pipe, busy in total.busy_cycles.items()},
        stalls={reason: float(by_reason[i]) / issued for i, reason in enumerate(STALL_REASONS)},
        stall_samples=total.stall_cycles,
        simulated_instructions=simulator.simulated_instructions,
        simulated_cycles=simulator.simulated_cycles,
        engine=simulator.engine,
        notes=tuple(dict.fromkeys(simulator.notes)),
    )
