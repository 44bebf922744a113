"""Makes the jobs of `gemmsim sweep` from its options, for built-in kernels and for kernels of the user's own."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gemmsim.analysis.studies.ranking import Point, Pruned
from gemmsim.cli.options import LaunchOptions, SweepOptions
from gemmsim.cli.requests import launch_on, refuse_dtype, refuse_own
from gemmsim.compile.source import PythonKernel
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.cases import LadderCase
from gemmsim.launch.ladder import kernel_info
from gemmsim.launch.notation import parse_assignments, parse_dims
from gemmsim.launch.own import own_source, split_target
from gemmsim.launch.spec import LaunchSpec, Settings
from gemmsim.studies.compare import task_of
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.expressions import evaluate, fill
from gemmsim.sweeps.job import Job
from gemmsim.sweeps.space import Size, ladder_jobs, products, size_names, unlaunchable, unmet

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")  # what fits 64 bits
_SIZE = re.compile(r"\s*0*[1-9][0-9]{0,17}\s*")
Axes = dict[str, tuple[int, ...]]


def parse_sizes(texts: Sequence[str]) -> list[Size]:
    """Read the texts of --size, such as `1024,2048` or `4096x4096x1024` (M x N x K); each size is returned once."""
    found: list[Size] = []
    for word in (word.strip() for text in texts for word in text.split(",")):
        parts = word.lower().split("x")
        if len(parts) not in (1, 3) or not all(map(_SIZE.fullmatch, parts)):
            raise GemmsimError(f"--size '{word}' is no size: write 1024, a list as 1024,2048, or MxNxK")
        m, n, k = (int(part) for part in (parts * 3 if len(parts) == 1 else parts))
        found.append((m, n, k))
    return list(dict.fromkeys(found))


def parse_axes(texts: Sequence[str], kernel: str | None) -> tuple[Axes, dict[str, str]]:
    """Read the texts of --set-kernel as ({name: values}, {name: expression}).

    `bm=64,128` gives values; so does `bm=all` for a built-in `kernel`. `threads=2*bm` gives an expression, which only
    a kernel of the user's own may have (`kernel` is None).
    """
    axes: Axes = {}
    derived: dict[str, str] = {}
    for name, text in parse_assignments(texts, "--set-kernel").items():
        words = [word.strip() for word in text.split(",")]
        if kernel is not None and text == "all":
            axes[name] = next((one.allowed for one in kernel_info(kernel).tunables if one.name == name), ())
            if not axes[name]:
                raise GemmsimError(f"kernel '{kernel}' has no tunable '{name}'")
        elif all(_INTEGER.fullmatch(word) for word in words):
            axes[name] = tuple(dict.fromkeys(map(int, words)))
        elif kernel is None:
            derived[name] = text
        else:
            raise GemmsimError(f"--set-kernel {name}={text}: wants whole numbers with commas between, or all")
    return axes, derived


def sweep_jobs(options: SweepOptions) -> tuple[list[Job], list[Pruned], list[str]]:
    """Return jobs for combinations that may launch, the other combinations, and the names of the varied tunables."""
    axes, derived = parse_axes(options.kernel_sets, options.kernel)
    sizes = parse_sizes(options.sizes)
    names = dict.fromkeys(name.strip() for name in options.gpus.split(","))
    gpus = [load_gpu(name, options.gpu_sets) for name in names]
    if options.kernel is None:
        return *_file_jobs(options, axes, derived, sizes, gpus), list(axes)
    own = {
        "--entry": options.entry,
        "--grid": options.grid,
        "--block": options.block,
        "--arg": options.args,
        "--array": options.arrays,
    }
    refuse_own(options.kernel, own | {"--verify": options.verify})
    if not sizes:
        raise GemmsimError("no problem size: give --size N, as in --size 1024,2048")
    template = LadderCase(options.kernel, 1, 1, 1, options.dtype, warm_caches=options.caches == "warm")
    settings = Settings(use_cache=not options.no_cache, engine=options.engine)
    return *ladder_jobs(template, axes, sizes, gpus, options.where, settings), list(axes)


def _file_jobs(
    options: SweepOptions, axes: Axes, derived: dict[str, str], sizes: Sequence[Size], gpus: Sequence[GpuSpec]
) -> tuple[list[Job], list[Pruned]]:
    """Return the jobs of a kernel of the user's own, and the combinations that cannot launch.

    `{expression}` in --entry, --grid, --block, --shared and --arg is filled in for each combination. It may use the
    names that --set-kernel gives, and m, n and k. A Python function is called with the values of `axes`, and returns
    the kernel.
    """
    refuse_dtype(options.dtype)
    jobs, pruned = [], []
    clash = [name for name in (*axes, *derived) if name in ("m", "n", "k")]
    if clash:
        raise GemmsimError(f"--set-kernel {clash[0]}: m, n and k are those of --size")
    file, function = split_target(str(options.target))
    values = products(axes, max(len(sizes), 1) * len(gpus))
    for gpu, size, chosen in itertools.product(gpus, sizes or (None,), values):
        names = chosen | size_names(size)
        for name, expression in derived.items():
            names[name] = evaluate(expression, names)
        m, n, k = size or (None, None, None)
        point = Point(function or Path(file).name, chosen, m, n, k, "", gpu.name)
        found = unmet(options.where, names)
        if not found:
            launch = _filled(options, names, size)
            grid, block = _three(launch.grid), _three(launch.block)
            found = unlaunchable(grid, block, launch.shared, gpu)
        if found:
            pruned.append(Pruned(point, *found))
        else:
            jobs.append(Job(point, task_of(point.kernel, gpu.name, partial(_own_launch, launch, gpu, chosen))))
    if jobs:
        own_source(
            str(options.target), None, (), options.compiling.compiler
        )  # a file that cannot be read fails the sweep, not each combination
    return jobs, pruned


def _own_launch(options: LaunchOptions, gpu: GpuSpec, tunables: dict[str, int]) -> LaunchSpec:
    spec = launch_on(gpu, parse_arguments(options.args, options.arrays), options)
    kernel = spec.kernel
    if isinstance(kernel, PythonKernel) and tunables:
        kernel = replace(kernel, tunables=tuple(tunables.items()))
    return replace(spec, kernel=kernel, labels=replace(spec.labels, tunables=tunables))


def _filled(options: SweepOptions, names: Mapping[str, int], size: Size | None) -> LaunchOptions:
    """Return the options that `gemmsim analyze` would get for one combination.

    names  {name: value} that an expression in braces may use
    """
    m, n, k = size or (None, None, None)
    shared = fill(options.shared, names)
    if not shared.isdecimal():
        raise GemmsimError(f"--shared {shared} must be 0 or more bytes")
    return LaunchOptions(
        target=options.target,
        entry=fill(options.entry, names) if options.entry else None,
        compiling=replace(
            options.compiling,
            define=tuple(fill(one, names) for one in options.compiling.define),
            compile_options=tuple(fill(one, names) for one in options.compiling.compile_options),
        ),
        m=m,
        n=n,
        k=k,
        grid=_counts(options.grid, names, "--grid"),
        block=_counts(options.block, names, "--block"),
        shared=int(shared),
        args=tuple(fill(one, names) for one in options.args),
        arrays=tuple(fill(one, names) for one in options.arrays),
        verify=options.verify,
        caches=options.caches,
        no_cache=options.no_cache,
        engine=options.engine,
    )


def _counts(text: str | None, names: Mapping[str, int], option: str) -> str:
    """Fill in the --grid or --block of one combination: `{n//bn},{m//bm}` becomes "8,4".

    A count of 0 passes here; `unlaunchable` then leaves the combination out.
    """
    if text is None:
        raise GemmsimError(f"{option} is missing: a kernel of your own needs --grid X,Y,Z and --block X,Y,Z")
    filled = fill(text, names)
    if not all(_INTEGER.fullmatch(word.strip()) for word in filled.split(",")):
        parse_dims(filled, option)
    return filled


def _three(text: str | None) -> list[int]:
    counts = [int(word) for word in str(text).split(",")]
    return counts + [1] * (3 - len(counts))
