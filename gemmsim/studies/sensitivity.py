"""Says how much faster one launch would be if a number of the GPU were 10 % better, for each number in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gemmsim.analysis.studies.sensitivity import Better, Changes, Effect, Sensitivity, rule_of, varied_keys
from gemmsim.api import count, recount, time
from gemmsim.gpu.check import check
from gemmsim.gpu.improve import better_values, value_of, with_values
from gemmsim.gpu.spec import GpuSpec
from gemmsim.gpu.units import UNITS
from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import Program
from gemmsim.launch.spec import LaunchSpec
from gemmsim.sm.pipes import port_of, port_pipes
from gemmsim.support.errors import GemmsimError

NONE_LEFT = "cannot be better: the GPU has none of it, or as much as there can be"


def sensitivity(
    spec: LaunchSpec, share: float = 0.1, progress: Callable[[int, int], None] = lambda done, total: None
) -> Sensitivity:
    """Predict the time of a launch with each number of its GPU better by `share` (0.1 is 10 %), one at a time.

    The kernel is executed once. For each number, the launch is timed again. Where the number changes counts too, as the
    size of a cache does, the memory accesses are counted again first. The kernel is executed again only where other
    blocks would be executed.

    progress  called with how many of the GPU's numbers are done, and how many there are

    Raises GemmsimError as `api.count` does, and for a share that is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise GemmsimError(f"--by {100 * share:g} must be above 0 and below 100")
    spec = replace(spec, settings=spec.settings.for_many())
    gpu = spec.gpu
    counted = count(spec)
    before_us = time(counted, spec).duration_us
    keys = [key for key in varied_keys() if key in gpu.provenance]
    effects, skipped = [], {}
    for done, key in enumerate(keys, 1):
        rule = rule_of(key)
        values = better_values(gpu, key, rule.better == Better.MORE, share)
        try:
            better = replace(spec, gpu=check(with_values(gpu, values)))
            if not values:
                skipped[key] = NONE_LEFT
            elif not uses(counted.program, gpu, key):
                effects.append(_effect(key, gpu, better.gpu, before_us, before_us))
            else:
                here = recount(counted, better) if rule.changes == Changes.COUNTS else counted
                effects.append(_effect(key, gpu, better.gpu, before_us, time(here, better).duration_us))
        except GemmsimError as error:
            skipped[key] = " ".join(str(error).split())
        progress(done, len(keys))
    return Sensitivity(
        labels=spec.labels,
        gpu=gpu.name,
        asked_pct=100 * share,
        time_us=before_us,
        effects=tuple(sorted(effects, key=lambda effect: -effect.saved_us)),
        skipped=skipped,
    )


def uses(program: Program, gpu: GpuSpec, key: str) -> bool:
    """Return whether the GPU's number `key` can change a program's time.

    It cannot where the number belongs to a pipe that no instruction of the program uses.
    """
    section, name, *_ = key.split(".")
    ports = {port_of(one.opcode, program.arch, one.modifiers) for one in program.instructions}
    pipes = {pipe for port in ports for pipe in port_pipes(port, gpu.pipes)}
    always = ("cbu", "adu", "lsu")  # branches, barriers and address units have the latencies and rates of these pipes
    if section in ("warpgroup", "tma"):
        return section in ports
    if section == "mbarrier":
        return any(row_of(one).kind is Kind.MBARRIER for one in program.instructions)
    if section == "mma":
        return "tensor" in pipes
    return section != "pipes" or name in pipes or name in always


def _effect(key: str, gpu: GpuSpec, changed: GpuSpec, before_us: float, time_us: float) -> Effect:
    rule = rule_of(key)
    before, after = _first(value_of(gpu, key)), _first(value_of(changed, key))
    unit = gpu.provenance[key].unit
    return Effect(
        key=key,
        better=rule.better,
        changes=rule.changes,
        before=before,
        after=after,
        unit=unit,
        unit_factor=UNITS[unit][1] if unit in UNITS else 1.0,
        change_pct=100 * (after / before - 1),
        time_us=time_us,
        saved_us=before_us - time_us,
        saved_pct=100 * (before_us - time_us) / before_us,
    )


def _first(value: float | tuple[float, ...]) -> float:
    return float(value[0] if isinstance(value, tuple) else value)
