"""Executes a launch of a program on its memory, and predicts its time."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gemmsim
from gemmsim.api import conclude, count, sanitize
from gemmsim.isa.program import Program
from gemmsim.launch.spec import Labels, LaunchSpec
from gemmsim.programs.allocations import Allocation, argument_of
from gemmsim.programs.machine import Machine, TimedLaunch
from gemmsim.programs.modules import DeviceKernel
from gemmsim.report.hazards import fatal, one_line
from gemmsim.report.studies.programs import ProgramLaunch
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import Executor
from gemmsim.trace.finish import finish
from gemmsim.trace.launch_data.module_data import variables_after
from gemmsim.trace.sanitizer.findings import Sanitized
from gemmsim.trace.types import Execution, Launch, Packed, Variable

_HOST_MEMORY = (
    "it uses memory of the host (pinned, managed or registered); its time is that with the memory on the GPU, without "
    "the bus"
)


@dataclass(frozen=True)
class Asked:
    """A launch as the program asks for it.

    parameters  the bytes of each kernel parameter, in order
    """

    kernel: DeviceKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    parameters: tuple[bytes, ...]
    dynamic_shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False


def launch(machine: Machine, asked: Asked) -> ProgramLaunch:
    """Execute a launch (`_launch`). Raises GemmsimError, which names the line of the program, where it cannot be."""
    try:
        return _launch(machine, asked)
    except GemmsimError as error:
        line = host_line()
        raise GemmsimError(f"launch {len(machine.launches) + 1}{line and f', from {line}'}: {error}") from error


def _launch(machine: Machine, asked: Asked) -> ProgramLaunch:
    """Execute a launch: its results land in the machine's memory.

    Its time is predicted as `api.analyze` does, from a sample of the blocks where it is large. Then every block is
    executed once more for its results, unless that is more than `Machine.complete_below` allows.
    """
    program, module, timed = asked.kernel.program, asked.kernel.module, machine.timed
    variables = module.variables(program)
    given = [*asked.parameters, *program.constants.values()]
    given += [one.content.tobytes() for one in (variables, *module.constants.values()) if one is not None]
    reached = [one for one in machine.memory.reachable(given, asked.kernel.constants) if one is not variables]
    spec = _spec(machine, asked, reached, variables)
    findings = _findings(spec) if machine.sanitize else None
    key, number = (_identity(asked, reached), timed.before), len(machine.launches) + 1
    known, results = timed.known.get(key), None
    if known is None or asked.kernel.depends_on_contents:
        counted = count(spec, program, timed.l2)
        report = conclude(counted, spec, machine.closer_look)
        report = replace(report, notes=(*_notes(reached), *report.notes))
        known = TimedLaunch(number, report, counted.traffic.l2_after)
        results = None if counted.execution.sampled else _results_of(counted.execution)
    complete = results is not None or sum(known.report.evidence.executed) <= machine.complete_below
    if results is None:
        results = _finished(spec, program) if complete else _results_of(counted.execution)
    timed.known[key], timed.before, timed.l2 = known, key[0], known.l2_after
    _store(reached, results, "" if complete else f"launch {number} is too large to be executed in full here")
    if variables is not None:
        module.store(program, variables, results.variables)
    sys.stdout.write(results.printed)
    report = replace(known.report, printed=results.printed)
    if findings is not None:
        report = replace(report, findings=tuple(map(one_line, findings.findings)), sanitized=findings)
    made = ProgramLaunch(report, complete, host_line(), None if known.number == number else known.number)
    machine.launches.append(made)
    machine.clock_us += made.duration_us
    return made


@dataclass(frozen=True)
class _Results:
    """What a launch has stored, as in `Execution`."""

    outputs: tuple[NDArray | None, ...]
    written: tuple[NDArray[np.bool_] | None, ...]
    variables: Mapping[str, Variable]
    printed: str


def _results_of(execution: Execution) -> _Results:
    return _Results(execution.outputs, execution.written, execution.variables, execution.printed)


def _finished(spec: LaunchSpec, program: Program) -> _Results:
    """Execute every block for its results."""
    executor = Executor(program, spec.launch, spec.settings.max_instructions)
    finish(executor)
    memory = executor.memory
    return _Results(memory.arrays(), memory.stored(), variables_after(program, memory), executor.externals.printed)


def _spec(machine: Machine, asked: Asked, reached: Sequence[Allocation], variables: Allocation | None) -> LaunchSpec:
    kernel = asked.kernel
    launch = Launch(
        grid=asked.grid,
        block=asked.block,
        args=tuple(map(argument_of, reached)),
        dynamic_shared_bytes=asked.dynamic_shared_bytes,
        parameters=tuple(map(Packed, asked.parameters)),
        cooperative=asked.cooperative,
        symbols=kernel.module.contents(kernel.program),
        cluster=asked.cluster,
        globals_at=None if variables is None else variables.address,
    )
    labels = Labels(kernel.program.name)
    return LaunchSpec(kernel.source, launch, machine.gpu, labels, settings=machine.settings)


def _findings(spec: LaunchSpec) -> Sanitized:
    """Look for defects. Raises GemmsimError where one of them would end the launch on a GPU."""
    found = sanitize(spec)
    if fatal(found):
        raise GemmsimError("; ".join(map(one_line, found.findings)))
    return found


def _identity(asked: Asked, reached: Sequence[Allocation]) -> str:
    """Return a hash of all that decides the time of a launch, besides what its arrays and L2 hold."""
    layout = [(one.address, one.size) for one in reached]
    how = asked.grid, asked.block, asked.cluster, asked.dynamic_shared_bytes, asked.cooperative, asked.parameters
    what = asked.kernel.program.cubin_sha256, asked.kernel.name
    return hashlib.sha256(repr((what, how, layout)).encode()).hexdigest()


def _notes(reached: Sequence[Allocation]) -> tuple[str, ...]:
    notes = [_HOST_MEMORY] if any(one.on_host for one in reached) else []
    if missing := next((one.incomplete for one in reached if one.incomplete), ""):
        notes.append(f"memory that it can reach is not complete: {missing}")
    return tuple(notes)


def _store(reached: Sequence[Allocation], results: _Results, missing: str) -> None:
    """Copy what the launch has stored to the machine's memory. `missing` says why that is not all, "" where it is."""
    for one, output, stored in zip(reached, results.outputs, results.written, strict=True):
        if output is not None and stored is not None and stored.any():
            np.copyto(one.content, output)
            one.incomplete = missing or one.incomplete


_PACKAGES = ("numba", "triton", "cuda")  # whose code is not the program's, wherever they lie


@cache
def _not_the_program() -> tuple[str, ...]:
    """The folders whose code is not the user's program: this package, installed packages, Python's library."""
    here = Path(gemmsim.__file__).parent
    return (str(here), str(Path(os.__file__).parent))


def host_line() -> str:
    """Return "script.py:12", the line of the program that is running now; "" where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        own = package not in _PACKAGES and "site-packages" not in file
        if own and not file.startswith((*_not_the_program(), "<")):
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
