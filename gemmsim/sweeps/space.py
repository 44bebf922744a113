"""Makes all combinations of a sweep, and sorts out, without compiling, combinations that cannot be launched."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from gemmsim.analysis.studies.ranking import Point, Pruned
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.cases import LadderCase, checked_dtype, checked_tunables, ladder_launch
from gemmsim.launch.ladder import kernel_info
from gemmsim.launch.spec import USUAL_SETTINGS, Settings
from gemmsim.studies.compare import task_of
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.expressions import evaluate
from gemmsim.sweeps.job import Job

Size = tuple[int, int, int]  # m, n, k
MOST_COMBINATIONS = 1_000_000
MOST_BLOCKS = (2**31 - 1, 65535, 65535)  # x, y, z: CUDA programming guide, technical specifications, every capability


def products(axes: Mapping[str, Sequence[int]], times: int) -> list[dict[str, int]]:
    """Return every combination of the values of the axes, as {name of an axis: value}; the last axis varies fastest.

    times  how often the caller uses each combination (once for each size and GPU)

    Raises GemmsimError for more than MOST_COMBINATIONS in all.
    """
    count = times
    for values in axes.values():
        count *= len(values)
    if count > MOST_COMBINATIONS:
        raise GemmsimError(f"{count:,} combinations are more than {MOST_COMBINATIONS:,}: give fewer values")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def size_names(size: Size | None) -> dict[str, int]:
    """Return {"m": m, "n": n, "k": k}, which an expression may use besides the tunables; {} where there is no size."""
    return dict(zip("mnk", size, strict=True)) if size else {}


def ladder_jobs(
    template: LadderCase,
    axes: Mapping[str, Sequence[int]],
    sizes: Sequence[Size],
    gpus: Sequence[GpuSpec],
    where: Sequence[str] = (),
    settings: Settings = USUAL_SETTINGS,
) -> tuple[list[Job], list[Pruned]]:
    """Return jobs for the combinations of a built-in kernel that may launch, and the others, each with the reason.

    template  gives kernel, dtype and caches; its size and tunables are replaced
    axes      {name of a tunable: values that it takes}
    where     conditions that a combination must meet (see `expressions`)

    Raises GemmsimError for a dtype, tunable or value that the kernel does not have.
    """
    info = kernel_info(template.kernel)
    dtype = checked_dtype(info, template.dtype)
    chosen = [checked_tunables(info, one) for one in products(axes, len(sizes) * len(gpus))]
    jobs, pruned = [], []
    for gpu, size, tunables in itertools.product(gpus, sizes, chosen):
        m, n, k = size
        point = Point(info.name, tunables, m, n, k, dtype, gpu.name)
        found = unmet(where, tunables | size_names(size))
        if not found:
            try:
                shape = info.launch(*size, tunables)
            except ValueError as error:
                found = ("rules of the kernel", str(error))
            else:
                found = unlaunchable(shape.grid, shape.block, shape.dynamic_shared_bytes, gpu)
        if found:
            pruned.append(Pruned(point, *found))
        else:
            case = replace(template, m=m, n=n, k=k, tunables=tunables)
            jobs.append(Job(point, task_of(info.name, gpu.name, partial(ladder_launch, case, gpu, settings))))
    return jobs, pruned


def unmet(where: Sequence[str], names: Mapping[str, int]) -> tuple[str, str] | None:
    """Return (kind, reason) of the first condition in `where` that does not hold; None where all hold."""
    for condition in where:
        if not evaluate(condition, names):
            return f"--where '{condition}'", "the condition does not hold"
    return None


def unlaunchable(
    grid: Sequence[int], block: Sequence[int], dynamic_shared_bytes: int, gpu: GpuSpec
) -> tuple[str, str] | None:
    """Return (kind, reason) where the GPU refuses any kernel with this grid, block and shared memory; else None."""
    threads = block[0] * block[1] * block[2]
    if min(*grid, *block) < 1:
        return "grid", f"a grid of {_by(grid)} blocks of {_by(block)} threads has none"
    if any(count > most for count, most in zip(grid, MOST_BLOCKS, strict=True)):
        return "grid", f"a grid of {_by(grid)} blocks; at most {_by(MOST_BLOCKS)}"
    if threads > gpu.sm.max_threads_per_block:
        return "threads", f"{threads} threads a block; {gpu.name} takes {gpu.sm.max_threads_per_block}"
    if dynamic_shared_bytes > gpu.shared.max_bytes_per_block:
        most = gpu.shared.max_bytes_per_block
        return "shared memory", f"{dynamic_shared_bytes} bytes of shared memory a block; {gpu.name} has {most}"
    return None


def _by(counts: Sequence[int]) -> str:
    return " x ".join(map(str, counts))
