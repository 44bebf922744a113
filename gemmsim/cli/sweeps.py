"""From the options of `sweep` to its jobs: lists of values, sizes, and kernels of the user's own."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gemmsim.analysis.studies.ranking import Point, Pruned
from gemmsim.cli.parse import parse_assignments, parse_dims
from gemmsim.cli.requests import Options, target_request
from gemmsim.compile.key import cache_key
from gemmsim.compile.source import PythonKernel, kernel_file
from gemmsim.compile.toolchain import tool_versions
from gemmsim.gpu import GpuSpec
from gemmsim.launch.ladder import kernel_info
from gemmsim.launch.request import AnalyzeRequest
from gemmsim.support.errors import GemmsimError
from gemmsim.sweep.expressions import evaluate, fill
from gemmsim.sweep.space import Size, products, size_names, unlaunchable, unmet

_INTEGER = re.compile(r"[+-]?[0-9]+")
Axes = dict[str, tuple[int, ...]]


def parse_sizes(texts: Sequence[str]) -> list[Size]:
    """`1024,2048` or `4096x4096x1024` (M x N x K), repeated."""
    found: list[Size] = []
    for word in (word.strip() for text in texts for word in text.split(",")):
        parts = word.lower().split("x")
        if len(parts) not in (1, 3) or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            raise GemmsimError(f"--size '{word}' is no size: write 1024, a list as 1024,2048, or MxNxK")
        m, n, k = (int(part) for part in (parts * 3 if len(parts) == 1 else parts))
        found.append((m, n, k))
    return list(dict.fromkeys(found))


def parse_axes(texts: Sequence[str], kernel: str | None) -> tuple[Axes, dict[str, str]]:
    """({name: values}, {name: expression}) of --set-kernel `bm=64,128`, `bm=all` (of a rung), `threads=2*bm`."""
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


@dataclass(frozen=True)
class FileJob:
    """A kernel of the user's own; `options` is what `analyze` would be told. tunables: of a Python factory."""

    options: Options
    values: dict[str, int]
    gpu: GpuSpec
    tunables: tuple[tuple[str, int], ...] | None = None
    asked: dict[str, object] = field(default_factory=dict)

    @property
    def point(self) -> Point:
        one = self.options
        return Point(_shown(one), self.values, one.m, one.n, one.k, "", self.gpu.name)

    @property
    def source_name(self) -> str:
        return f"{self.options.target} {self.gpu.arch}"

    def source_hash(self) -> str:
        file, _, function = _target(self.options)
        return cache_key(kernel_file(Path(file), function or None), self.gpu.arch, tool_versions())

    def request(self) -> AnalyzeRequest:
        request = target_request(self.options)
        kernel = request.kernel
        if isinstance(kernel, PythonKernel) and self.tunables:
            kernel = replace(kernel, tunables=self.tunables)
        return replace(request, gpu=self.gpu, kernel=kernel, labels=replace(request.labels, tunables=self.values))


def file_jobs(
    template: Options,
    axes: Axes,
    derived: dict[str, str],
    sizes: Sequence[Size],
    gpus: Sequence[GpuSpec],
    where: Sequence[str],
    shared: str,
) -> tuple[list[FileJob], list[Pruned]]:
    """Combinations that may launch, and those that cannot.

    `{expression}` in --entry, --grid, --block, --shared and --arg is filled in for each: names are those of
    --set-kernel, and m, n and k. A Python function is called with the values of `axes`, and returns the kernel.
    """
    jobs, pruned = [], []
    clash = [name for name in (*axes, *derived) if name in ("m", "n", "k")]
    if clash:
        raise GemmsimError(f"--set-kernel {clash[0]}: m, n and k are those of --size")
    python = bool(_target(template)[1])
    values = products(axes, max(len(sizes), 1) * len(gpus))
    for gpu, size, chosen in itertools.product(gpus, sizes or (None,), values):
        names = chosen | size_names(size)
        for name, expression in derived.items():
            names[name] = evaluate(expression, names)
        m, n, k = size or (None, None, None)
        point = Point(_shown(template), chosen, m, n, k, "", gpu.name)
        found = unmet(where, names)
        if found:
            pruned.append(Pruned(point, *found))
            continue
        options = _filled(template, names, size, shared)
        grid, block = ([int(word) for word in str(text).split(",")] for text in (options.grid, options.block))
        found = unlaunchable(_three(grid), _three(block), options.shared, gpu)
        if found:
            pruned.append(Pruned(point, *found))
            continue
        asked: dict[str, object] = {"options": _asked(options), "values": chosen}
        jobs.append(FileJob(options, chosen, gpu, tuple(chosen.items()) if python and chosen else None, asked))
    return jobs, pruned


def _filled(template: Options, names: dict[str, int], size: Size | None, shared: str) -> Options:
    m, n, k = size or (None, None, None)
    grid, block = _counts(template.grid, names, "--grid"), _counts(template.block, names, "--block")
    text = fill(shared, names)
    if not text.isdecimal():
        raise GemmsimError(f"--shared {text} must be 0 or more bytes")
    return replace(
        template,
        m=m,
        n=n,
        k=k,
        entry=fill(template.entry, names) if template.entry else None,
        grid=grid,
        block=block,
        shared=int(text),
        args=tuple(fill(one, names) for one in template.args),
    )


def _counts(text: str | None, names: dict[str, int], option: str) -> str:
    """`{n//bn},{m//bm}` -> "8,4"; a count may be 0 here, which no launch allows."""
    if text is None:
        raise GemmsimError(f"{option} is missing: a kernel of your own needs --grid X,Y,Z and --block X,Y,Z")
    filled = fill(text, names)
    if not all(_INTEGER.fullmatch(word.strip()) for word in filled.split(",")):
        parse_dims(filled, option)
    return filled


def _three(counts: list[int]) -> list[int]:
    return counts + [1] * (3 - len(counts))


def _asked(options: Options) -> dict[str, object]:
    """What decides the answer; the GPU, the source and where it was compiled have parts of the key of their own."""
    names = (
        "entry",
        "m",
        "n",
        "k",
        "grid",
        "block",
        "shared",
        "args",
        "alpha",
        "beta",
        "verify",
        "seed",
        "full",
        "caches",
    )
    return {"target": _target(options)[1:]} | {name: getattr(options, name) for name in names}


def _target(options: Options) -> tuple[str, str, str]:
    """(file, function of a Python file or "", name to show)"""
    target = str(options.target)
    file, colon, function = target.rpartition(":")
    if colon and Path(file).suffix.lower() == ".py":
        return file, function, function
    return target, "", Path(target).name


def _shown(options: Options) -> str:
    return _target(options)[2]
