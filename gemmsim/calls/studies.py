"""Predicts launches for Python code: `analyze`, `compare`, `sweep`, `sensitivity` and `explain`."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from gemmsim import api
from gemmsim.analysis.studies.ranking import Point, Pruned
from gemmsim.calls.kernels import is_function, named
from gemmsim.calls.launches import Dims, Options, launch_spec
from gemmsim.calls.results import Comparison, Explanation, Sensitivity, Sweep
from gemmsim.calls.trace import Trace
from gemmsim.cli.comparisons import named_rung
from gemmsim.cli.options import DEFAULT_GPU
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.cases import LadderCase
from gemmsim.launch.ladder import kernel_infos
from gemmsim.launch.spec import LaunchSpec
from gemmsim.report.glossary.entries import lookup
from gemmsim.studies import compare as comparing
from gemmsim.studies import sensitivity as varying
from gemmsim.studies.baseline import find_bundle, with_baseline
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.expressions import fill
from gemmsim.sweeps.job import Job
from gemmsim.sweeps.local import run_local
from gemmsim.sweeps.run import sweep as run_sweep
from gemmsim.sweeps.space import ladder_jobs, products, size_names, unmet
from gemmsim.sweeps.store import Store

Kernel = str | Path | Callable[..., Any]
Arguments = Sequence[object] | Mapping[str, object]
Gpu = GpuSpec | str


def analyze(
    kernel: Kernel,
    *,
    grid: Dims | None = None,
    block: Dims | None = None,
    args: Arguments = (),
    arrays: Mapping[str, object] | None = None,
    symbols: Mapping[str, object] | None = None,
    tunables: Mapping[str, int] | None = None,
    gpu: Gpu = DEFAULT_GPU,
    **options: Unpack[Options],
) -> Trace:
    """Predict one launch of a kernel.

    kernel    a numba.cuda kernel (a closure or a notebook's function too), CUDA C++ text, the path of a .cu, .ptx or
              binary file, "my.py:function", or the name of a rung such as "tiled" (`gemmsim list kernels`)
    grid      blocks of the grid, (x, y, z) or fewer: (8, 8)
    block     threads of a block: (32, 32). A rung takes grid, block and args from `size=`
    args      one for each parameter: a NumPy array (which is not changed), a shape such as (1024, 1024) for random f32,
              a number (of 64 bits for a numba kernel, else np.int32(256)), text such as "bf16[64,64]", a struct; or a
              mapping {name: argument}
    arrays    {name: array} of arrays that are no parameters, to which text such as "&A" refers
    symbols   {name: content} of `__device__` and `__constant__` variables that the host sets
    tunables  {"tile": 16} of a rung, or of a function "my.py:build" that makes the kernel
    gpu       "h200" (`gemmsim list gpus`), a GPU file, or a `GpuSpec`
    options   see `Options`: size=1024, verify="gemm", define=("TILE=32",), ...

    Raises GemmsimError, with one clear line, for a launch that cannot be made or executed.
    """
    common = {"grid": grid, "block": block, "args": args, "arrays": arrays, "symbols": symbols}
    spec = launch_spec(kernel, gpu, {**common, "tunables": tunables, **options})
    return Trace(spec, api.analyze(spec))


def sensitivity(kernel: Kernel, *, by_pct: float = 10.0, gpu: Gpu = DEFAULT_GPU, **launch: Any) -> Sensitivity:
    """Say how much time a launch would save with each number of the GPU better, one at a time.

    by_pct  how much better, in percent
    launch  the arguments of `analyze`: size=1024, or grid, block, args, ...
    """
    spec = launch_spec(kernel, gpu, launch)
    with _bar("sensitivity", "numbers") as shown:
        return Sensitivity(varying.sensitivity(spec, by_pct / 100, shown))


def explain(name: str, kernel: Kernel | None = None, *, gpu: Gpu = DEFAULT_GPU, **launch: Any) -> Explanation:
    """Say what a metric, a stall reason or a term means: `print(gemmsim.explain("bank conflict"))`.

    kernel, launch  the arguments of `analyze`, to see the numbers of a launch
    """
    entry = lookup(name)
    return Explanation(entry, None if kernel is None else api.analyze(launch_spec(kernel, gpu, launch)))


def compare(
    kernels: Sequence[Kernel] | Mapping[str, Kernel | Mapping[str, Any]] | None = None,
    *,
    gpu: Gpu | Sequence[Gpu] = DEFAULT_GPU,
    jobs: int = 1,
    baseline: str | None = None,
    **launch: Any,
) -> Comparison:
    """Predict several launches of one problem size, and say why each beats the one before it.

    kernels  as of `analyze`, rungs as "tiled:tile=16", too; or {name: kernel} with names of your own, where a kernel
             can be {"kernel": ..., "grid": ..., ...} with arguments that differ; None: all rungs
    gpu      one GPU, or several: ["a100", "h200"]
    jobs     processes that work at once. With more than one, a script needs `if __name__ == "__main__":`
    baseline "cublas", or a bundle of launches captured on a GPU, to stand beside the kernels
    launch   the arguments of `analyze`; a kernel of your own needs its problem size, too: size=1024, or verify="gemm"
    """
    if kernels is None:
        kernels = list(kernel_infos())
    pairs = kernels.items() if isinstance(kernels, Mapping) else [(_shown(one), one) for one in kernels]
    tasks = []
    for one_gpu, (name, given) in itertools.product(_gpus(gpu), pairs):
        own = dict(given) if isinstance(given, Mapping) else {"kernel": given}
        tasks.append(comparing.task_of(name, one_gpu.name, partial(_compared, one_gpu, {**launch, **own})))
    by_gpu = len({task.name for task in tasks}) == 1 < len(tasks)
    with _bar("compare", "launches") as shown:
        done = itertools.count(1)
        found = comparing.compare(tasks, by_gpu, jobs, lambda outcome: shown(next(done), len(tasks)))
    if baseline is not None:
        bundle = find_bundle(baseline)
        bundle.check_size((found.m, found.n, found.k))
        found = with_baseline(found, bundle, tasks, jobs)
    return Comparison(found)


def sweep(
    kernel: Kernel,
    *,
    tunables: Mapping[str, Sequence[int]],
    size: int | Sequence[int | Sequence[int]] = (),
    gpu: Gpu | Sequence[Gpu] = DEFAULT_GPU,
    where: Sequence[str] = (),
    jobs: int = 1,
    keep: str | Path | None = None,
    **launch: Any,
) -> Sweep:
    """Predict every combination of tunables, sizes and GPUs, and sort them by time.

    kernel    as of `analyze`; a function that is no kernel is called with the tunables and returns one
    tunables  {"bm": [64, 128], "tm": [4, 8]}
    size      1024, [1024, 2048] or [(4096, 4096, 1024)]: M, N, K
    gpu       one GPU, or several
    where     conditions that a combination must meet: ["bm * bn <= 16384"]
    jobs      as of `compare`
    keep      SQLite file in which results are kept: what is in it is not predicted again
    launch    the arguments of `analyze`. Of these, functions are called with those tunables and m, n, k that they
              name (`grid=lambda bm, n, m: (n // 64, m // bm)`), and in text "{m // bm}" is filled in
    """
    sizes = [_three(one) for one in ([size] if isinstance(size, int) else size)]
    axes, gpus = {name: tuple(values) for name, values in tunables.items()}, _gpus(gpu)
    rung = None if is_function(kernel) or not isinstance(kernel, str) else named(kernel)[0]
    if rung in kernel_infos():
        if not sizes:
            raise GemmsimError("no problem size: give size=1024, or size=[1024, 2048]")
        template = LadderCase(
            str(rung), 1, 1, 1, launch.pop("dtype", None), warm_caches=launch.pop("caches", "") == "warm"
        )
        if launch:
            raise GemmsimError(f"{next(iter(launch))} is for a kernel of your own; {rung} takes it from the size")
        todo, pruned = ladder_jobs(template, axes, sizes, gpus, where)
    else:
        todo, pruned = _own_jobs(kernel, axes, sizes, gpus, where, launch)
    with Store(Path(keep) if keep is not None else None) as store, _bar("sweep", "combinations") as shown:
        done = itertools.count(1)
        told = partial(_told, shown, done, len(todo))
        return Sweep(run_sweep(todo, pruned, list(axes), store, lambda left: run_local(left, jobs), progress=told))


def _told(shown: Callable[[int, int], None], done: Iterator[int], total: int, _: object) -> None:
    shown(next(done), total)


def _compared(gpu: GpuSpec, launch: dict[str, Any]) -> LaunchSpec:
    kernel = launch.pop("kernel")
    if isinstance(kernel, str) and kernel.partition(":")[0] in kernel_infos():
        _, kernel, tunables = named_rung(kernel)
        launch = {**launch, "tunables": {**tunables, **(launch.get("tunables") or {})}}
    return launch_spec(kernel, gpu, launch)


def _own_jobs(
    kernel: Kernel,
    axes: Mapping[str, tuple[int, ...]],
    sizes: Sequence[tuple[int, int, int]],
    gpus: Sequence[GpuSpec],
    where: Sequence[str],
    launch: Mapping[str, Any],
) -> tuple[list[Job], list[Pruned]]:
    """Return the jobs of a kernel of the user's own, and the combinations that do not meet the conditions."""
    jobs, pruned = [], []
    values = products(axes, max(len(sizes), 1) * len(gpus))
    for gpu, size, chosen in itertools.product(gpus, sizes or (None,), values):
        names = chosen | size_names(size)
        m, n, k = size or (None, None, None)
        point = Point(_shown(kernel), chosen, m, n, k, "", gpu.name)
        found = unmet(where, names)
        if found:
            pruned.append(Pruned(point, *found))
            continue
        make = partial(_combination, kernel, gpu, chosen, names, launch)
        jobs.append(Job(point, comparing.task_of(point.kernel, gpu.name, make)))
    return jobs, pruned


def _combination(
    kernel: Kernel, gpu: GpuSpec, chosen: dict[str, int], names: dict[str, int], launch: Mapping[str, Any]
) -> LaunchSpec:
    filled = {name: _filled(value, names) for name, value in launch.items()}
    filled |= {name: names[name] for name in "mnk" if name in names}
    if is_function(kernel) and not hasattr(kernel, "py_func"):
        return launch_spec(kernel(**chosen), gpu, filled)  # type: ignore[operator]
    made = isinstance(kernel, str) and ".py:" in kernel
    return launch_spec(kernel, gpu, {**filled, **({"tunables": chosen} if made else {})})


def _filled(value: Any, names: Mapping[str, int]) -> Any:
    """Fill the tunables and sizes of one combination into a value of `launch`."""
    if is_function(value):
        return value(**_taken(value, names))
    if isinstance(value, str):
        filled = fill(value, names)
        return int(filled) if value != filled and filled.isdecimal() else filled
    if isinstance(value, list | tuple):
        return type(value)(_filled(one, names) for one in value)
    return {key: _filled(one, names) for key, one in value.items()} if isinstance(value, dict) else value


def _taken(function: Callable[..., Any], names: Mapping[str, int]) -> Mapping[str, int]:
    """Return those names that a function takes: all where it has **parameters."""
    takes = inspect.signature(function).parameters
    every = any(one.kind is one.VAR_KEYWORD for one in takes.values())
    return names if every else {name: value for name, value in names.items() if name in takes}


def _gpus(gpu: Gpu | Sequence[Gpu]) -> list[GpuSpec]:
    several = [gpu] if isinstance(gpu, str | GpuSpec) else gpu
    return [load_gpu(one) if isinstance(one, str) else one for one in several]


def _three(size: int | Sequence[int]) -> tuple[int, int, int]:
    m, n, k = (size,) * 3 if isinstance(size, int) else size
    return m, n, k


def _shown(kernel: Kernel) -> str:
    if is_function(kernel):
        return str(getattr(kernel, "__name__", "kernel"))
    text = str(kernel)
    return "kernel" if "\n" in text else text


@contextmanager
def _bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error, where that is a terminal; gives a function that takes (done, total)."""
    from tqdm import tqdm

    with tqdm(desc=name, unit=f" {unit}", disable=None, dynamic_ncols=True, leave=False) as bar:

        def shown(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield shown
