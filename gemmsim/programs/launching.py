"""Executes a launch of a program on its memory, and predicts its time."""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gemmsim
from gemmsim.api import conclude, count, sanitize
from gemmsim.isa.program import Program
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.programs.allocations import Allocation, argument_of
from gemmsim.programs.footprints import Footprint, footprint_of
from gemmsim.programs.machine import Machine, TimedLaunch
from gemmsim.programs.modules import DeviceKernel
from gemmsim.programs.postponed import Waiting
from gemmsim.report.hazards import fatal, one_line, with_findings
from gemmsim.report.studies.programs import COMPLETE, SAMPLED, UNREAD, ProgramLaunch
from gemmsim.support.errors import GemmsimError
from gemmsim.support.threads import in_background
from gemmsim.trace.execute import Executor
from gemmsim.trace.finish import finish
from gemmsim.trace.launch_data.module_data import variables_after
from gemmsim.trace.sanitizer.findings import Sanitized
from gemmsim.trace.types import Execution, Launch, Packed, Variable

_HOST_MEMORY = (
    "it uses memory of the host (pinned, managed or registered); its time is that with the memory on the GPU, without "
    "the bus"
)
_HALVED_FROM = 256  # blocks of a launch that two threads may share
_SAMPLED_ABOVE = 1_000_000  # warp instructions of a launch that is asked for its time alone


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


class LaunchError(GemmsimError):
    """Says which launch, from which line of the program, could not be simulated, and why."""

    def __init__(self, number: int, line: str, why: GemmsimError) -> None:
        super().__init__(f"launch {number}{line and f', from {line}'}: {why}")


def launch(machine: Machine, asked: Asked) -> ProgramLaunch:
    """Time a launch, and see to it that its results land in the machine's memory (`_launch`).

    Raises GemmsimError, which names the line of the program, where it cannot be simulated.
    """
    try:
        return _launch(machine, asked)
    except LaunchError:
        raise
    except GemmsimError as error:
        raise LaunchError(len(machine.launches) + 1, host_line(), error) from error


def _launch(machine: Machine, asked: Asked) -> ProgramLaunch:
    """Time and execute a launch.

    Its time is predicted as `api.analyze` does, from a sample of the blocks where it is large. Then every block is
    executed once more for its results, unless that is more than `Machine.complete_below` allows; later, or never, where
    the launch may wait (`programs.postponed`).
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
        known, results = _timed(machine, asked, spec, reached)
    timed.known[key], timed.before, timed.l2 = known, key[0], known.l2_after
    now, report = Waiting(asked.kernel.name, known.footprint, reached), known.report
    complete = sum(report.evidence.executed) <= machine.complete_below
    missing = "" if complete else f"launch {number} is too large to be executed in full here"
    missing = missing or next((one.incomplete for one in reached if one.incomplete and one in now.reads), "")
    if results is not None and results.sampled and complete:
        results = None
    if findings is not None:
        report = with_findings(report, findings)
    made = ProgramLaunch(report, COMPLETE if complete else SAMPLED, host_line(), _other(known.number, number))
    if complete and results is None and _may_wait(machine, asked.kernel, variables, now):
        now.execute = partial(_execute_later, machine, asked, now, number, missing)
        machine.postponed.add(now)
        made = replace(made, results=UNREAD)
    else:
        machine.postponed.before_launch(now)
        results = _finished(spec, program) if complete and results is None else results
        made = replace(made, report=replace(report, printed="" if results is None else results.printed))
        _store(now, results, missing)
        if variables is not None and results is not None:
            module.store(program, variables, results.variables)
        sys.stdout.write(made.report.printed)
    machine.launches.append(made)
    machine.clock_us += made.duration_us
    return made


def _other(number: int, own: int) -> int | None:
    return None if number == own else number


def _timed(
    machine: Machine, asked: Asked, spec: LaunchSpec, reached: Sequence[Allocation]
) -> tuple[TimedLaunch, _Results]:
    """Predict the time of a launch; return with it what the blocks have stored that were executed for that.

    What they stored counts, and so does the time of a kernel that the content of arrays leads, only if nothing of what
    it read was still to come. So launches that wait are executed where it has turned out to read what they store to,
    and it is counted once more. If content leads the kernel, and launches of another one store to what it can reach,
    these are executed first.
    """
    waiting, leads = machine.postponed, asked.kernel.depends_on_contents
    if leads and waiting.writers(reached, but=asked.kernel.name):
        waiting.before_read(reached)
    try:
        counted = count(spec, asked.kernel.program, machine.timed.l2, leave_out=False)
    except GemmsimError:
        if not (leads and waiting.writers(reached)):
            raise
        waiting.before_read(reached)
        counted = count(spec, asked.kernel.program, machine.timed.l2, leave_out=False)
    footprint = footprint_of(asked.kernel.program, counted.execution.trace, reached)
    if (leads or not counted.execution.sampled) and waiting.writers([reached[one] for one in footprint.reads]):
        waiting.before_read(reached)
        counted = count(spec, asked.kernel.program, machine.timed.l2, leave_out=False)
        footprint = footprint_of(asked.kernel.program, counted.execution.trace, reached)
    report = conclude(counted, spec, machine.closer_look)
    report = replace(report, notes=(*_notes(reached, footprint), *report.notes))
    known = TimedLaunch(len(machine.launches) + 1, report, counted.traffic.l2_after, footprint)
    return known, _results_of(counted.execution)


def _may_wait(machine: Machine, kernel: DeviceKernel, variables: Allocation | None, now: Waiting) -> bool:
    """Whether a launch may be executed when something needs its results (`programs.postponed`).

    It must not do what the program sees otherwise: print, stop, or store to variables of its module.
    """
    program, asked_for_all = kernel.program, machine.complete_below == math.inf
    stops = any(one.opcode == "BPT" for one in program.instructions)
    aside = program.externals or stops or variables is not None or kernel.module.contents(program)
    seen = all(one.watched for one in now.reads | now.writes)
    return not (machine.sanitize or asked_for_all or aside or now.footprint.in_place) and seen and bool(now.writes)


def _execute_later(machine: Machine, asked: Asked, now: Waiting, number: int, missing: str) -> None:
    """Execute a launch that has waited. It does not touch memory that the program has freed and it does not read."""
    there = [
        replace(one, content=np.zeros(one.size, np.uint8)) if one.gone and one not in now.reads else one
        for one in now.reached
    ]
    made = machine.launches[number - 1]
    try:
        results = _finished(_spec(machine, asked, there, None), asked.kernel.program, apart=True)
    except GemmsimError as error:
        raise LaunchError(number, made.host_line, error) from error
    _store(Waiting(now.kernel, now.footprint, there), results, missing)
    machine.launches[number - 1] = replace(made, results=SAMPLED if missing else COMPLETE)


@dataclass(frozen=True)
class _Results:
    """What a launch has stored, as in `Execution`."""

    outputs: tuple[NDArray | None, ...]
    written: tuple[NDArray[np.bool_] | None, ...]
    variables: Mapping[str, Variable]
    printed: str
    sampled: bool = False


def _results_of(execution: Execution) -> _Results:
    return _Results(execution.outputs, execution.written, execution.variables, execution.printed, execution.sampled)


def _finished(spec: LaunchSpec, program: Program, apart: bool = False) -> _Results:
    """Execute every block for its results.

    apart  whether the launch reads nothing that it stores to, so that the two halves of its blocks may be executed at
           the same time, each on a copy of the memory; the second half's stores then count as the later ones
    """
    executor, blocks = Executor(program, spec.launch, spec.settings.max_instructions), range(spec.launch.blocks)
    if not apart or executor.residents or len(blocks) < _HALVED_FROM:
        finish(executor)
        return _results_in(executor)
    other, half = Executor(program, spec.launch, spec.settings.max_instructions), len(blocks) // 2
    ended = in_background(partial(finish, other, blocks[half:]))
    finish(executor, blocks[:half])
    ended()
    made, later = _results_in(executor), _results_in(other)
    for number, stored in enumerate(later.written):
        output, newer, marks = made.outputs[number], later.outputs[number], made.written[number]
        if stored is not None and output is not None and newer is not None and marks is not None:
            np.copyto(output, newer, where=stored)
            np.logical_or(marks, stored, out=marks)
    return made


def _results_in(executor: Executor) -> _Results:
    memory, program = executor.memory, executor.program
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
    return LaunchSpec(kernel.source, launch, machine.gpu, labels, settings=_settings(machine))


def _settings(machine: Machine) -> Settings:
    """Return the settings of a launch. One that is asked for its time alone is sampled where it is not tiny."""
    settings = machine.settings
    if not machine.benchmarking or settings.full:
        return settings
    return replace(settings.for_many(), full_below=_SAMPLED_ABOVE)


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


def _notes(reached: Sequence[Allocation], footprint: Footprint) -> tuple[str, ...]:
    notes = [_HOST_MEMORY] if any(one.on_host for one in reached) else []
    if missing := next(
        (one.incomplete for n, one in enumerate(reached) if one.incomplete and n in footprint.reads), ""
    ):
        notes.append(f"memory that it reads is not complete: {missing}")
    return tuple(notes)


def _store(now: Waiting, results: _Results | None, missing: str) -> None:
    """Copy what a launch has stored to the machine's memory.

    results  None where it was not executed
    missing  why that is not all, "" where it is
    """
    if results is None:
        for one in now.writes:
            one.incomplete = missing
        return
    for one, output, stored in zip(now.reached, results.outputs, results.written, strict=True):
        if output is None or stored is None or not stored.any():
            continue
        every = bool(stored.all())
        np.copyto(one.content, output, where=True if every else stored)
        one.incomplete = missing if every else missing or one.incomplete


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
