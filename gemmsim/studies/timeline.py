"""Records what the warps of one SM do, cycle by cycle, as a TimelineReport."""

from __future__ import annotations

from gemmsim.analysis.code.source_lines import line_text, source_line
from gemmsim.api import count, time
from gemmsim.isa.program import Program
from gemmsim.launch.spec import LaunchSpec
from gemmsim.report.timeline.types import InstructionText, TimelineReport
from gemmsim.sm.share import blocks_of_last_sm
from gemmsim.sm.timeline import Extent, record
from gemmsim.support.errors import GemmsimError


def timeline(spec: LaunchSpec, blocks: int | None = None) -> TimelineReport:
    """Record what the warps of the busiest SM do.

    blocks  how many of the SM's blocks are recorded, from its first on; None: as many as the SM holds at once

    Raises GemmsimError as `api.analyze` does, and where the settings ask for the native engine.
    """
    if spec.settings.engine == "native":
        raise GemmsimError("--engine native: a timeline is recorded while SimPy runs; leave the option out")
    launch, gpu = spec.launch, spec.gpu
    counted = count(spec)
    program, trace, cost = counted.program, counted.execution.trace, counted.traffic.cost
    resident = counted.occupancy.blocks_per_sm
    timing = time(counted, spec)
    recorded = record(program, launch, trace, cost, gpu, timing.sm_clock_hz, resident, Extent(blocks))
    return TimelineReport(
        labels=spec.labels,
        gpu_title=gpu.title,
        arch=gpu.arch,
        clock_hz=timing.sm_clock_hz,
        kernel_cycles=timing.cycles,
        sm_count=gpu.sm.count,
        blocks_per_sm=blocks_of_last_sm(launch.blocks, trace.shares[0] if trace.shares else None, gpu),
        warps_per_block=launch.warps_per_block,
        timeline=recorded,
        instructions=_instructions(program),
    )


def _instructions(program: Program) -> tuple[InstructionText, ...]:
    found = []
    for instruction in program.instructions:
        line = source_line(program, instruction)
        found.append(InstructionText(instruction.text, line.line if line else None, line_text(program, line)))
    return tuple(found)
