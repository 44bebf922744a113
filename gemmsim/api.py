"""Predicts launches: `analyze` takes a LaunchSpec (kernel, launch and GPU) and gives a Report.

The steps of `analyze` are functions of their own: `count` executes the launch, `time` predicts how long it takes, and
`conclude` makes the Report.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from gemmsim.analysis.accesses.tile_maps import tile_maps
from gemmsim.analysis.code.operations import floating_point_operations
from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Advice
from gemmsim.analysis.limits.launch_counters import launch_counters
from gemmsim.analysis.limits.occupancy import Occupancy, theoretical_occupancy
from gemmsim.analysis.limits.roofline import roofline_of
from gemmsim.analysis.results import check_results
from gemmsim.analysis.verdict.advice import advise
from gemmsim.analysis.verdict.bottleneck import find_bottleneck
from gemmsim.analysis.verdict.gains import cured, ranked, with_quick_doubles
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.compile.declared import declared_types
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.isa.tensor_sums import sum_roundoff
from gemmsim.launch.arrays import shown_argument
from gemmsim.launch.declared import check_numbers
from gemmsim.launch.spec import BURST, SUSTAINED, LaunchSpec, Settings
from gemmsim.memory.caches.l2 import L2State
from gemmsim.memory.requests.copies import with_copies
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.report.report import Report, SamplingReport
from gemmsim.sm.power import energy_of, timed_within
from gemmsim.sm.schedule import TimingOptions, schedule
from gemmsim.sm.streams import Loops, recorded_streams
from gemmsim.sm.types import Timing
from gemmsim.support.deviations import NOT_MODELLED
from gemmsim.support.provenance import Provenance
from gemmsim.support.version import __version__
from gemmsim.trace.blocks.choice import FULL_BELOW, plan, with_shares
from gemmsim.trace.blocks.classes import with_relation
from gemmsim.trace.blocks.sampled import execute_plan
from gemmsim.trace.execute import Executor
from gemmsim.trace.launch_data.clusters import clusters_of
from gemmsim.trace.launch_data.grid_workspace import check_cooperative
from gemmsim.trace.launch_data.module_data import placed_variables
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Execution, Launch, PlacedVariable
from gemmsim.trace.words import STALE

if TYPE_CHECKING:  # not every prediction needs these, so they are imported where they are used
    from gemmsim.analysis.accesses.types import AccessSample, BlockView
    from gemmsim.trace.sanitizer.findings import Sanitized


@dataclass(frozen=True)
class Counted:
    """A launch that was executed and counted, but not timed.

    launch     the launch, with the arrays that it was executed with
    program    the compiled kernel
    occupancy  how many blocks an SM holds, and why
    execution  what the warps of the executed blocks did
    traffic    what the memory accesses of those blocks asked of shared memory, caches and DRAM
    pointers   device address of each array argument, None for a scalar
    sm_count   number of SMs of the GPU
    continued  whether L2 began as the launch before, another one, had left it
    variables  where the variables of the kernel's module lie
    """

    launch: Launch
    program: Program
    occupancy: Occupancy
    execution: Execution
    traffic: Traffic
    pointers: tuple[int | None, ...]
    sm_count: int
    continued: bool = False
    variables: tuple[PlacedVariable, ...] = ()


def count(
    spec: LaunchSpec, program: Program | None = None, begins: L2State | None = None, leave_out: bool = True
) -> Counted:
    """Compile a kernel, execute its launch and count what it asks of the memory.

    program    the compiled kernel, where it is known already
    begins     what L2 holds when the launch begins; None: what `spec.warm_caches` says
    leave_out  whether blocks that run for long may leave out iterations of steady loops, and so records of the trace

    Raises GemmsimError, with one clear line, where the kernel or the launch does not allow it.
    """
    gpu, settings = spec.gpu, spec.settings
    if program is None:
        program = compiled(spec)
    occupancy = _occupancy(program, spec)
    fit = _fit(program, spec, occupancy)
    executor = Executor(program, spec.launch_with_arrays(), settings.max_instructions, resident=fit)
    executor.cutting.allowed = leave_out
    chosen = plan(executor, occupancy.blocks_per_sm, gpu.sm.count, settings.full, settings.full_below)
    try:
        execution = execute_plan(executor, chosen, spec.results)
    except Stopped as stopped:
        if stopped.status != STALE or not executor.cutting.cuts:
            raise
        return count(spec, program, begins, leave_out=False)  # what the blocks left out is read by others
    dealt = with_shares(chosen, execution.trace, gpu.sm.count, occupancy.blocks_per_sm)
    if dealt.streams != chosen.streams:
        execution = execute_plan(executor, dealt, spec.results)
    trace = with_relation(execution.trace, executor.launch, chosen.classes) if chosen.classes else execution.trace
    execution = replace(execution, trace=with_copies(program, replace(trace, shares=dealt.shares)))
    traffic = _served(program, spec, execution, occupancy, begins)
    pointers = tuple(executor.memory.pointers)
    continued = begins is not None and not execution.sampled  # the estimate from a sample begins with an empty L2
    variables = placed_variables(program, executor.memory)
    return Counted(
        *(executor.launch, program, occupancy, execution, traffic, pointers, gpu.sm.count, continued, variables)
    )


def recount(counted: Counted, spec: LaunchSpec) -> Counted:
    """Return what `count` would return for `spec`, with less work.

    counted  what `count` returned for the same kernel and launch, but on a GPU with other numbers (sizes, rates,
             latencies), or with caches that were cold instead of warm

    Blocks are executed again only where `count` would now choose other blocks to execute. Its choice depends on the
    number of SMs and on how many blocks an SM holds. Otherwise the memory model alone runs again. Raises GemmsimError
    where not even one block fits on an SM.
    """
    gpu = spec.gpu
    occupancy = _occupancy(counted.program, spec)
    if gpu.arch != counted.program.arch or gpu.sm.count != counted.sm_count:
        return count(spec)
    if occupancy.blocks_per_sm != counted.occupancy.blocks_per_sm:
        return count(spec)
    traffic = _served(counted.program, spec, counted.execution, occupancy)
    return replace(counted, occupancy=occupancy, traffic=traffic)


def sanitize(spec: LaunchSpec) -> Sanitized:
    """Look for races and other defects in the blocks that `count` would execute, in 4 to 8 times the time of `count`.

    Raises GemmsimError for whatever keeps the kernel from being compiled or executed at all.
    """
    from gemmsim.overruns import look_beyond
    from gemmsim.trace.sanitize import sanitize as sanitize_blocks

    program, settings = compiled(spec), spec.settings
    occupancy = _occupancy(program, spec)
    launch, resident = spec.launch_with_arrays(), occupancy.blocks_per_sm
    fit = _fit(program, spec, occupancy)
    executing = partial(Executor, launch=launch, max_instructions=settings.max_instructions, resident=fit)
    checked = executing(program, sanitizing=True)
    try:
        executor = executing(program)
        blocks = plan(executor, resident, spec.gpu.sm.count, settings.full, settings.full_below).blocks
    except Stopped as stopped:
        blocks = _blocks_beside(checked, stopped.block, settings)
    return look_beyond(sanitize_blocks(checked, blocks), spec, program, partial(executing, sanitizing=True), blocks)


def _blocks_beside(checked: Executor, stopped: int, settings: Settings) -> tuple[int, ...]:
    """Choose the blocks to look at where an ordinary execution of the block `stopped` ends early.

    A wrong access ends an ordinary execution; a sanitizing one, `checked`, goes on past it. So that says how much there
    is to execute: the whole grid where `plan` would take all of it, else only the block `stopped`, or its cluster.
    """
    blocks, together = checked.launch.blocks, checked.together(stopped)
    try:
        total = int(checked.probe(together).executed.sum()) * blocks // len(together)
    except Stopped:  # a barrier that is never complete, for example
        return together
    limit = FULL_BELOW if settings.full_below is None else settings.full_below
    whole = total <= settings.max_instructions and (settings.full or total <= limit)
    return tuple(range(blocks)) if whole else together


def analyze(spec: LaunchSpec, accesses: bool = True) -> Report:
    """Predict one launch. Raises GemmsimError as `count` does.

    accesses  whether the Report gets samples of single accesses and the view of one block, which only drawings use
    """
    return conclude(count(spec), spec, accesses)


def time(counted: Counted, spec: LaunchSpec, loops: Loops | None = None) -> Timing:
    """Predict how long a launch takes. `counted` is what `count` or `recount` returned for the same spec, `loops` those
    of its trace (`RecordedStreams`)."""
    gpu, trace, wanted = spec.gpu, counted.execution.trace, spec.settings.clock
    fixed_hz = None if isinstance(wanted, str) else wanted
    # The clock, which may be found by trials, is none of what streams depend on.
    recorded = cache(partial(recorded_streams, counted.program, trace, counted.traffic.cost, gpu, loops))

    def timed(clock_hz: float | None) -> Timing:
        engine, hz = spec.settings.engine, clock_hz or fixed_hz
        options = TimingOptions(engine=engine, sm_clock_hz=hz, warm_code=spec.warm_code)
        resident, cost = counted.occupancy.blocks_per_sm, counted.traffic.cost
        return schedule(counted.program, counted.launch, trace, cost, gpu, resident, options, recorded)

    executed = (trace.weight @ trace.executed).tolist()
    energy = energy_of(counted.program, executed, counted.traffic, counted.launch.blocks, gpu)
    limits = {BURST: gpu.power.burst_limit_watts, SUSTAINED: gpu.power.limit_watts}
    return timed_within(limits.get(str(wanted)), timed, energy, gpu) if energy else timed(None)


def conclude(counted: Counted, spec: LaunchSpec, accesses: bool = True) -> Report:
    """Make the Report that `analyze` returns for `spec`.

    counted   what `count` or `recount` returned for the same spec
    accesses  as in `analyze`
    """
    launch, trace = counted.launch, counted.execution.trace
    loops: Loops = {}
    timing = time(counted, spec, loops)
    evidence = _evidence(counted, spec, timing)
    executed = SamplingReport(len(trace.blocks), launch.blocks, int(trace.executed.sum()), counted.execution.notes)
    samples, view = _closer_look(counted, spec) if accesses else ((), None)
    many, overhead_us = replace(spec, settings=spec.settings.for_many()), spec.gpu.launch.overhead_us
    advice = ranked(advise(evidence), timing.duration_us, overhead_us, lambda one: _without(one, counted, many, loops))
    return Report(
        labels=spec.labels,
        evidence=evidence,
        arguments=tuple(map(shown_argument, launch.args)),
        verified=check_results(counted.execution, launch, spec, sum_roundoff(counted.program)),
        sampling=executed,
        bottleneck=find_bottleneck(evidence, advice),
        advice=advice,
        notes=(*_origin_note(counted.program), *counted.traffic.notes, *timing.notes, *_calibration_note(spec.gpu)),
        not_modelled=NOT_MODELLED,
        versions={"gemmsim": __version__, **counted.program.toolchain},
        access_samples=samples,
        block_view=view,
        printed=counted.execution.printed,
        tile_maps=tile_maps(counted.program, launch) if accesses else (),
    )


def _without(advice: Advice, counted: Counted, spec: LaunchSpec, loops: Loops) -> float | None:
    """Predict the time, in us, with what an advice is about gone; None where the model cannot say."""
    if advice.cures:
        cost = cured(counted.traffic.cost, counted.execution.trace.record_pc, advice)
        return time(replace(counted, traffic=replace(counted.traffic, cost=cost)), spec, loops).duration_us
    if advice.rule == "low_occupancy":
        more = replace(counted.occupancy, blocks_per_sm=counted.occupancy.blocks_per_sm + 1)
        return time(replace(counted, occupancy=more), spec, loops).duration_us
    if advice.rule == "double_arithmetic":
        return time(counted, replace(spec, gpu=with_quick_doubles(spec.gpu)), loops).duration_us
    return None


def _origin_note(program: Program) -> tuple[str, ...]:
    return (f"the machine code is {program.origin}",) if program.origin else ()


def _calibration_note(gpu: GpuSpec) -> tuple[str, ...]:
    keys = gpu.fitted_keys
    records = {record for key in keys for record in gpu.provenance[key].records}
    return (f"times are calibrated: {', '.join(keys)} of this GPU were fitted to {len(records)} records",) * bool(keys)


def _closer_look(counted: Counted, spec: LaunchSpec) -> tuple[tuple[AccessSample, ...], BlockView]:
    from gemmsim.analysis.accesses.sample import sample_accesses

    labels, trace = spec.labels, counted.execution.trace
    shapes, pointers = counted.traffic.shapes, counted.pointers
    which = spec.verify, labels.size, counted.variables
    return sample_accesses(counted.program, counted.launch, trace, shapes, pointers, *which)


def compiled(spec: LaunchSpec) -> Program:
    """Return the compiled kernel of a launch, from the cache where it is there."""
    return compile_kernel(spec.kernel, spec.gpu.arch, default_cache() if spec.settings.use_cache else None)


def _served(
    program: Program, spec: LaunchSpec, execution: Execution, occupancy: Occupancy, begins: L2State | None = None
) -> Traffic:
    l1_bytes = spec.gpu.l1.unified_bytes - occupancy.carveout_bytes
    launch, resident = spec.launch, occupancy.blocks_per_sm
    traffic = serve(program, launch, execution.trace, spec.gpu, l1_bytes, resident, begins or spec.warm_caches)
    if execution.one_order:  # hardware may take another order, and then counts differ
        traffic = replace(traffic, provenance=dict.fromkeys(traffic.provenance, Provenance.MODELLED))
    return traffic


def _occupancy(program: Program, spec: LaunchSpec) -> Occupancy:
    launch, clusters = spec.launch, clusters_of(program, spec.launch)
    return theoretical_occupancy(
        program.registers,
        program.static_shared_bytes + launch.dynamic_shared_bytes,
        launch.threads_per_block,
        spec.gpu,
        grid_blocks=launch.blocks,
        cluster_blocks=clusters.blocks if clusters.explicit else None,
    )


def _fit(program: Program, spec: LaunchSpec, occupancy: Occupancy) -> int:
    """Return how many blocks of the launch the GPU holds at once.

    Raises GemmsimError where those are too few for a cooperative launch, and for numbers of another type than declared.
    """
    check_numbers(program.name, declared_types(spec.kernel, program.symbol, program.abi), spec.launch)
    clusters, fit = occupancy.clusters_at_once, occupancy.blocks_per_sm * spec.gpu.sm.count
    if clusters is not None:
        fit = clusters * clusters_of(program, spec.launch).blocks
    check_cooperative(program, spec.launch, fit, spec.gpu.name)
    return fit


def _evidence(counted: Counted, spec: LaunchSpec, timing: Timing) -> Evidence:
    program, launch, occupancy = counted.program, counted.launch, counted.occupancy
    trace, traffic = counted.execution.trace, counted.traffic
    operations = floating_point_operations(program, trace)
    counters, provenance = dict(traffic.counters), dict(traffic.provenance)
    modelled = {
        "sm__cycles_active.max": timing.cycles,
        "gpu__time_duration.sum": timing.duration_us * 1e3,
        "smsp__issue_active.avg.pct_of_peak_sustained_active": timing.issue_active_pct,
        "sm__warps_active.avg.pct_of_peak_sustained_active": timing.achieved_occupancy_pct,
    }
    counters.update(modelled)
    provenance.update(dict.fromkeys(modelled, Provenance.CALIBRATED if spec.gpu.fitted_keys else Provenance.MODELLED))
    exact = launch_counters(program, launch, occupancy)
    counters.update(exact)
    provenance.update(dict.fromkeys(exact, Provenance.EXACT))
    return Evidence(
        program=program,
        gpu=spec.gpu,
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster or program.cluster,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
        warm_caches=spec.warm_caches,
        continued_caches=counted.continued,
        executed=tuple(np.asarray(trace.weight @ trace.executed).tolist()),
        traffic=traffic.instructions,
        counters=counters,
        provenance=provenance,
        occupancy=occupancy,
        roofline=roofline_of(traffic, timing.duration_us, spec.gpu, operations.total, operations.precision),
        timing=timing,
    )
