"""The whole flow: a kernel, a launch and a GPU in; a Report out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gemmsim.analysis.code.operations import floating_point_operations
from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.limits.occupancy import Occupancy, theoretical_occupancy
from gemmsim.analysis.limits.roofline import Roofline, roofline
from gemmsim.analysis.verdict.advice import advise
from gemmsim.analysis.verdict.bottleneck import find_bottleneck
from gemmsim.analysis.verify import verify
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.launch.request import AnalyzeRequest
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.report.report import Report, SamplingReport
from gemmsim.sm.schedule import schedule
from gemmsim.sm.types import Timing
from gemmsim.support.deviations import NOT_MODELLED
from gemmsim.support.provenance import Provenance
from gemmsim.support.version import __version__
from gemmsim.trace.async_copies import without_destinations
from gemmsim.trace.blocks.choice import plan
from gemmsim.trace.execute import Executor, Stopped
from gemmsim.trace.types import Argument, Execution, Launch, WarpTrace

if TYPE_CHECKING:  # what not every prediction needs is imported where it is
    from gemmsim.analysis.accesses.types import AccessSample, BlockView
    from gemmsim.trace.sanitizer.findings import Sanitized


@dataclass(frozen=True)
class Counted:
    """A launch executed and counted, before anything is timed.

    pointers  device address of each array argument; sm_count: of the GPU
    """

    program: Program
    occupancy: Occupancy
    execution: Execution
    traffic: Traffic
    pointers: tuple[int | None, ...]
    sm_count: int


def count(request: AnalyzeRequest, program: Program | None = None) -> Counted:
    """Compile, execute and count a launch. Raises GemmsimError, with one clear line, for whatever cannot be.

    program  what compiling the request's kernel gives, where it is known already
    """
    launch, gpu = request.launch, request.gpu
    if program is None:
        program = compile_kernel(request.kernel, gpu.arch, default_cache() if request.use_cache else None)
    occupancy = _occupancy(program, request)
    executor = Executor(program, launch, request.sampling.max_instructions)
    chosen = plan(executor, occupancy.blocks_per_sm, gpu.sm.count, request.sampling.full)
    execution = executor.run(chosen.blocks, chosen.weight, chosen.streams)
    execution = replace(execution, trace=without_destinations(program, execution.trace))
    l1_bytes = gpu.l1.unified_bytes - occupancy.carveout_bytes
    traffic = serve(program, launch, execution.trace, gpu, l1_bytes, occupancy.blocks_per_sm, request.warm_caches)
    return Counted(program, occupancy, execution, traffic, tuple(executor.memory.pointers), gpu.sm.count)


def recount(counted: Counted, request: AnalyzeRequest) -> Counted:
    """What `count` gives for the same kernel and launch on a GPU with other numbers, or with warm caches, executing no
    more than it must.

    Which blocks are executed depends on the SMs and the blocks that are resident; all else is the memory model's.
    Raises GemmsimError where no block fits.
    """
    gpu, before = request.gpu, counted.occupancy
    occupancy = _occupancy(counted.program, request)
    if gpu.arch != counted.program.arch or gpu.sm.count != counted.sm_count:
        return count(request)
    if occupancy.blocks_per_sm != before.blocks_per_sm:
        return count(request)
    l1_bytes = gpu.l1.unified_bytes - occupancy.carveout_bytes
    trace = counted.execution.trace
    traffic = serve(counted.program, request.launch, trace, gpu, l1_bytes, occupancy.blocks_per_sm, request.warm_caches)
    return replace(counted, occupancy=occupancy, traffic=traffic)


def sanitize(request: AnalyzeRequest) -> Sanitized:
    """Look for races and other defects in the blocks that `count` would execute, at about twice its cost.

    Raises GemmsimError for whatever keeps the kernel from being compiled or executed at all.
    """
    from gemmsim.trace.sanitize import sanitize as sanitize_blocks

    launch, gpu = request.launch, request.gpu
    program = compile_kernel(request.kernel, gpu.arch, default_cache() if request.use_cache else None)
    executor = Executor(program, launch, request.sampling.max_instructions, watching=True)
    resident = _occupancy(program, request).blocks_per_sm
    try:
        blocks = plan(executor, resident, gpu.sm.count, request.sampling.full).blocks
    except Stopped as stopped:
        blocks = (stopped.block,)
    return sanitize_blocks(executor, blocks)


def analyze(request: AnalyzeRequest, accesses: bool = True) -> Report:
    """Predict one launch. Raises GemmsimError as `count` does.

    accesses  whether the Report gets single accesses and a block's way, which drawings are made of and numbers are not
    """
    return conclude(count(request), request, accesses)


def time(counted: Counted, request: AnalyzeRequest) -> Timing:
    """How long the launch takes that `count`, or `recount`, has counted for the same request."""
    trace, cost = counted.execution.trace, counted.traffic.cost
    return schedule(counted.program, request.launch, trace, cost, request.gpu, counted.occupancy.blocks_per_sm)


def conclude(counted: Counted, request: AnalyzeRequest, accesses: bool = True) -> Report:
    """What `analyze` gives, of a launch that is counted already for the same request."""
    launch = request.launch
    program, traffic, trace = counted.program, counted.traffic, counted.execution.trace
    timing = time(counted, request)
    evidence = _evidence(program, request, trace, traffic, counted.occupancy, timing)
    executed = SamplingReport(len(trace.blocks), launch.blocks, int(trace.executed.sum()), counted.execution.notes)
    samples, view = _closer_look(counted, request) if accesses else ((), None)
    return Report(
        labels=request.labels,
        evidence=evidence,
        arguments=tuple(_describe(argument) for argument in launch.args),
        verified=verify(counted.execution, launch, request.verify),
        sampling=executed,
        bottleneck=find_bottleneck(evidence),
        advice=advise(evidence),
        notes=(*traffic.notes, *timing.notes, *_calibration_note(request.gpu)),
        not_modelled=NOT_MODELLED,
        versions={"gemmsim": __version__, **program.toolchain},
        access_samples=samples,
        block_view=view,
    )


def _calibration_note(gpu: GpuSpec) -> tuple[str, ...]:
    keys = gpu.fitted_keys
    if not keys:
        return ()
    records = {record for key in keys for record in gpu.provenance[key].records}
    return (f"times are calibrated: {', '.join(keys)} of this GPU were fitted to {len(records)} records",)


def _closer_look(counted: Counted, request: AnalyzeRequest) -> tuple[tuple[AccessSample, ...], BlockView]:
    from gemmsim.analysis.accesses.sample import sample_accesses

    labels, trace = request.labels, counted.execution.trace
    sizes = (labels.m, labels.n, labels.k) if labels.m and labels.n and labels.k else None
    shapes, pointers = counted.traffic.shapes, counted.pointers
    return sample_accesses(counted.program, request.launch, trace, shapes, pointers, request.verify, sizes)


def _occupancy(program: Program, request: AnalyzeRequest) -> Occupancy:
    launch = request.launch
    return theoretical_occupancy(
        program.registers,
        program.static_shared_bytes + launch.dynamic_shared_bytes,
        launch.threads_per_block,
        request.gpu,
        grid_blocks=launch.blocks,
    )


def _evidence(
    program: Program,
    request: AnalyzeRequest,
    trace: WarpTrace,
    traffic: Traffic,
    occupancy: Occupancy,
    timing: Timing,
) -> Evidence:
    launch, gpu = request.launch, request.gpu
    counters, provenance = dict(traffic.counters), dict(traffic.provenance)
    modelled = {
        "sm__cycles_active.max": timing.cycles,
        "gpu__time_duration.sum": timing.duration_us * 1e3,
        "smsp__issue_active.avg.pct_of_peak_sustained_active": timing.issue_active_pct,
        "sm__warps_active.avg.pct_of_peak_sustained_active": timing.achieved_occupancy_pct,
    }
    counters.update(modelled)
    provenance.update(dict.fromkeys(modelled, Provenance.CALIBRATED if gpu.fitted_keys else Provenance.MODELLED))
    exact = launch_counters(program, launch, occupancy)
    counters.update(exact)
    provenance.update(dict.fromkeys(exact, Provenance.EXACT))
    return Evidence(
        program=program,
        gpu=gpu,
        grid=launch.grid,
        block=launch.block,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
        warm_caches=request.warm_caches,
        executed=tuple(np.asarray(trace.weight @ trace.executed).tolist()),
        traffic=traffic.instructions,
        counters=counters,
        provenance=provenance,
        occupancy=occupancy,
        roofline=_roofline(program, request, trace, traffic, timing),
        timing=timing,
    )


def launch_counters(program: Program, launch: Launch, occupancy: Occupancy) -> dict[str, float]:
    """Nsight Compute's launch__ metrics, which need no execution."""
    counters: dict[str, float] = {
        "launch__registers_per_thread": program.registers,
        "launch__shared_mem_per_block_static": program.static_shared_bytes,
        "launch__shared_mem_per_block_dynamic": launch.dynamic_shared_bytes,
        "launch__shared_mem_config_size": occupancy.carveout_bytes,
        "launch__occupancy_limit_blocks": occupancy.limit_blocks,
        "launch__occupancy_limit_warps": occupancy.limit_warps,
        "launch__occupancy_limit_registers": occupancy.limit_registers,
        "launch__occupancy_limit_shared_mem": occupancy.limit_shared_mem,
        "sm__maximum_warps_per_active_cycle_pct": occupancy.theoretical_pct,
    }
    if occupancy.waves_per_sm is not None:
        counters["launch__waves_per_multiprocessor"] = occupancy.waves_per_sm
    return counters


def _roofline(
    program: Program, request: AnalyzeRequest, trace: WarpTrace, traffic: Traffic, timing: Timing
) -> Roofline:
    operations = floating_point_operations(program, trace)
    sectors = request.gpu.l1.sector_bytes
    counters = traffic.counters
    dram = counters["dram__sectors_read.sum"] + counters["dram__sectors_write.sum"]
    l2 = sum(row.l2_sectors for row in traffic.instructions)
    l1 = sum(row.wavefronts for row in traffic.instructions)
    # The data stage moves up to 128 bytes a wavefront, whether or not the lanes use them.
    return roofline(
        operations.total,
        dram * sectors,
        l2 * sectors,
        l1 * request.gpu.l1.line_bytes,
        timing.duration_us * 1e-6,
        request.gpu,
        operations.precision,
    )


def _describe(argument: Argument) -> str:
    if argument.shape:
        return f"{argument.dtype}[{','.join(map(str, argument.shape))}]"
    return f"{argument.dtype}={argument.value}"
