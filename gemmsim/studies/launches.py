"""Predicts several launches in order on one GPU memory and one L2, each with a report of its own.

Every launch finds in the arrays what the launches before have stored, and in L2 what the launch before left there, its
dirty lines included. A launch that is sampled stores only what the executed blocks store, and what it leaves in L2 is
not known. So a launch is executed in full where a later one needs the contents: for its control flow or its addresses,
or because its C is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gemmsim.api import Counted, compiled, conclude, count
from gemmsim.isa.program import Program
from gemmsim.launch.arrays import with_arrays
from gemmsim.launch.spec import LaunchSpec
from gemmsim.report.report import Report
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.contents import trace_depends_on_contents
from gemmsim.trace.types import Argument, Launch


def analyze_launches(specs: Sequence[LaunchSpec], accesses: bool = False) -> tuple[Report, ...]:
    """Predict launches in the order in which they follow one another; return a Report for each.

    specs     launches on the same GPU. The first arguments of each are the same arrays, by name, in the same order:
              `launch.plan.read_plan` makes such launches. The arrays begin as the first launch gives them.
    accesses  as for `api.analyze`

    Raises GemmsimError as `api.count` does, with the number of the launch before the message; and where the launches
    are not on one GPU, or do not begin with the same arrays.
    """
    if not specs:
        return ()
    shared = _shared_arrays(specs)
    programs = _programs(specs)
    reasons = _reasons_for_full(specs, programs)
    arrays = with_arrays(specs[0].launch, specs[0].seed).args[:shared]
    reports: list[Report] = []
    before: Counted | None = None
    modules = _Modules()
    sampled: list[int] = []
    for number, spec in enumerate(specs, 1):
        now, notes = _continued(spec, arrays, reasons[number - 1])
        again = before is not None and before.traffic.l2_after is None and specs[number - 2] is spec
        now = replace(now, warm_caches=again, launch=modules.begin(now, programs[number - 1]))
        if before is not None and before.traffic.l2_after is None and not again:
            notes = (*notes, _unknown_l2(number - 1))
        if sampled:
            notes = (*notes, _unknown_contents(sampled))
        try:
            before = count(now, programs[number - 1], before.traffic.l2_after if before else None)
            report = conclude(before, now, accesses)
        except GemmsimError as error:
            raise GemmsimError(
                f"launch {number}: {error}{reasons[number - 1] and f' ({reasons[number - 1]})'}"
            ) from error
        reports.append(replace(report, notes=(*notes, *report.notes)))
        if before.execution.sampled:
            sampled.append(number)
        arrays = _stored(arrays, before)
        modules.end(now, before)
    return tuple(reports)


class _Modules:
    """Remembers what the variables of each module (`__device__`, `__constant__`) hold between launches.

    Launches whose kernels come from one file share its variables.
    """

    def __init__(self) -> None:
        self._held: dict[Path, dict[str, Argument]] = {}

    def begin(self, spec: LaunchSpec, program: Program) -> Launch:
        """Return the launch with the variables as earlier launches left them, except those that the launch sets."""
        known = {symbol.shown for symbol in program.symbols}
        held = {name: value for name, value in self._held.get(spec.kernel.path, {}).items() if name in known}
        return replace(spec.launch, symbols=tuple((held | dict(spec.launch.symbols)).items()))

    def end(self, spec: LaunchSpec, counted: Counted) -> None:
        """Remember what a launch set and what it has left."""
        held = self._held.setdefault(spec.kernel.path, {})
        held.update(counted.launch.symbols)
        for name, variable in counted.execution.variables.items():
            if variable.stored:  # else it may hold addresses of other variables, which every launch places anew
                held[name] = Argument("u8", variable.content.shape, variable.content.copy())


def _shared_arrays(specs: Sequence[LaunchSpec]) -> int:
    """Return how many of the first arguments are arrays that all launches share."""
    first = specs[0]
    count = len(first.launch.args)
    for spec in specs:
        if spec.gpu != first.gpu:
            raise GemmsimError(f"all launches of a plan run on one GPU, not on {first.gpu.name} and {spec.gpu.name}")
        same = 0
        for one, other in zip(first.launch.args, spec.launch.args, strict=False):
            if not one.name or not one.shape or _layout(one) != _layout(other):
                break
            same += 1
        count = min(count, same)
    if not count:
        raise GemmsimError("the launches share no array: give each of them the same named arrays first, in one order")
    return count


def _layout(argument: Argument) -> tuple[object, ...]:
    return argument.name, argument.dtype, argument.shape, argument.strides, argument.offset_bytes, argument.addresses


def _programs(specs: Sequence[LaunchSpec]) -> list[Program]:
    """Compile each kernel once: launches that repeat one another share a program, and so its lowered code."""
    found: list[Program] = []
    for number, spec in enumerate(specs):
        earlier = (n for n in range(number) if specs[n].kernel == spec.kernel)
        same = next(earlier, None)
        found.append(compiled(spec) if same is None else found[same])
    return found


def _reasons_for_full(specs: Sequence[LaunchSpec], programs: Sequence[Program]) -> list[str]:
    """Say for each launch why it must be executed in full; "" where nothing needs it."""
    reasons = [""] * len(specs)
    wanted = ""
    for number in range(len(specs) - 1, -1, -1):
        reasons[number] = wanted and f"executed in full, because {wanted}"
        if specs[number].verify is not None or specs[number].checks:
            wanted = f"the result of launch {number + 1} is checked"
        elif trace_depends_on_contents(programs[number]):
            wanted = f"what launch {number + 1} does depends on what its arrays hold"
    return reasons


def _continued(spec: LaunchSpec, arrays: Sequence[Argument], reason: str) -> tuple[LaunchSpec, tuple[str, ...]]:
    """Return a launch on the arrays as they are now, and what is to be noted about it."""
    launch = replace(spec.launch, args=(*arrays, *spec.launch.args[len(arrays) :]))
    settings = replace(spec.settings, full=spec.settings.full or bool(reason))
    return replace(spec, launch=launch, settings=settings), (reason,) if reason else ()


def _stored(arrays: Sequence[Argument], counted: Counted) -> tuple[Argument, ...]:
    """Return the arrays as a launch has left them."""
    outputs, written = counted.execution.outputs, counted.execution.written
    return tuple(
        replace(one, value=output) if stored is not None and stored.any() else now
        for one, now, output, stored in zip(arrays, counted.launch.args[: len(arrays)], outputs, written, strict=False)
    )


def _unknown_l2(before: int) -> str:
    return (
        f"L2 begins empty: launch {before} was sampled, so that what it left there is not known; too many DRAM reads "
        "where this launch reads what that one used (--full executes every block)"
    )


def _unknown_contents(sampled: Sequence[int]) -> str:
    which = f"launch {sampled[0]} was" if len(sampled) == 1 else f"launches {', '.join(map(str, sampled))} were"
    return (
        f"{which} sampled: what blocks that were not executed would have stored is missing from the arrays; addresses "
        "and counts of this launch do not depend on it"
    )
