"""Makes a LaunchSpec of Python objects: `launch_spec`, which `gemmsim.analyze` and the fixture `analyze` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from gemmsim.calls.kernels import function_source, is_function, is_text, named, plain, text_source
from gemmsim.cli.compiling import CompileOptions
from gemmsim.cli.options import TimedLaunchOptions
from gemmsim.cli.requests import Source, launch_on
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.python_items import python_arguments
from gemmsim.launch.spec import LaunchSpec
from gemmsim.support.errors import GemmsimError, nearest

Dims = int | Sequence[int]


class Options(TypedDict, total=False):
    """Further options of a launch; their names and values are those of `gemmsim analyze`.

    size, m, n, k      problem size of a rung, or of a kernel of your own that is checked: size=1024 is m = n = k
    dtype              of a rung: "f32", "f16", "bf16", "e4m3"
    entry              name of the kernel in a file or text that has several: "sgemm<128,8>"
    compiler, include, define, std, fast_math, maxrregcount, compile_options
                       for CUDA C++: define=("TILE=32",), std="c++17"
    shared             dynamic shared memory of a block, in bytes
    cluster            blocks of a cluster: (2, 1, 1)
    cooperative        whether all blocks must be resident at once
    verify             "gemm" compares C = alpha * A @ B + beta * C, the first three arrays, with float64; or a formula
    accumulate, reference, tolerance, alpha, beta
                       of that check
    seed               of random arrays
    full               whether every block is executed, instead of a sample
    max_instructions   warp instructions before the kernel is given up as endless
    caches             "cold" or "warm": what L2 holds when the launch begins
    clock              "burst", "sustained" or one such as "1410MHz"
    engine             "auto", "simpy" or "native"
    no_cache           whether a kernel that was compiled before is compiled again
    """

    size: int | None
    m: int | None
    n: int | None
    k: int | None
    dtype: str | None
    entry: str | None
    compiler: str | None
    include: tuple[str, ...]
    define: tuple[str, ...]
    std: str | None
    fast_math: bool
    maxrregcount: int | None
    compile_options: tuple[str, ...]
    shared: int
    cluster: Dims | None
    cooperative: bool
    verify: str | None
    accumulate: str | None
    reference: tuple[str, ...]
    tolerance: float | None
    alpha: float
    beta: float
    seed: int
    full: bool
    max_instructions: int | None
    caches: str
    clock: str
    engine: str
    no_cache: bool


def launch_spec(
    kernel: str | Path | Callable[..., Any],
    gpu: GpuSpec | str,
    launch: Mapping[str, Any],
    in_folder: Callable[[str], str] = str,
) -> LaunchSpec:
    """Make the launch that the arguments of `gemmsim.analyze` describe.

    launch     the others of these arguments, by name: grid, block, args, arrays, symbols, tunables, and `Options`
    in_folder  returns where a file lies that is named

    Raises GemmsimError, with one clear line, for a launch that cannot be made.
    """
    if not isinstance(gpu, str | GpuSpec):
        raise GemmsimError(f"gpu={gpu!r}: give a GPU's name, a .toml file or a GpuSpec")
    spec = load_gpu(gpu) if isinstance(gpu, str) else gpu
    options = _checked(dict(launch))
    args, arrays, symbols = (options.pop(name, None) or () for name in ("args", "arrays", "symbols"))
    names = {one.name for one in fields(CompileOptions)}
    compiling = CompileOptions(**{key: options.pop(key) for key in names & options.keys()})
    tunables = options.pop("tunables", None) or {}
    source: Source | None = None
    name: str | None = None
    target: str | None = None
    if is_function(kernel):
        target = plain(kernel).__name__
        source = partial(function_source, kernel, arch=spec.arch)
    elif isinstance(kernel, str) and is_text(kernel):
        target = "CUDA C++ text"
        text = text_source(kernel, options.get("entry"), compiling)
        source = lambda args: text  # noqa: E731
    else:
        name, target = named(kernel, in_folder)
    typed = TimedLaunchOptions(
        target=target,
        kernel=name,
        kernel_sets=tuple(f"{key}={value}" for key, value in tunables.items()),
        grid=_dims(options.pop("grid", None)),
        block=_dims(options.pop("block", None)),
        cluster=_dims(options.pop("cluster", None)),
        compiling=compiling,
        **options,
    )
    numba = is_function(kernel) or (target is not None and ".py:" in target)
    arguments = python_arguments(_plain_values(args, numba), dict(arrays), dict(symbols))
    return launch_on(spec, arguments, typed, source)


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    known = ("grid", "block", "args", "arrays", "symbols", "tunables", *Options.__annotations__)
    for name in options:
        if name not in known:
            raise GemmsimError(f"no option '{name}'{nearest(name, known)}: known are {', '.join(known)}")
    return options


def _plain_values(args: Sequence[object] | Mapping[str, object], numba: bool) -> list[object] | dict[str, object]:
    if isinstance(args, Mapping):
        return {key: _plain_value(value, numba, f"argument {key}") for key, value in args.items()}
    return [_plain_value(value, numba, f"argument {number}") for number, value in enumerate(args)]


def _plain_value(value: object, numba: bool, what: str) -> object:
    """Turn a shape, a Python number or an array of another package into what `python_arguments` knows.

    A numba kernel gets Python numbers as numba types them: 64 bits wide.
    """
    if isinstance(value, tuple) and value and all(isinstance(one, int) for one in value):
        return f"f32[{','.join(map(str, value))}]"
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        if numba:
            return np.int64(value) if isinstance(value, int) else np.float64(value)
        kind = "i32" if isinstance(value, int) else "f32"
        width = "int32" if isinstance(value, int) else "float32"
        raise GemmsimError(
            f"{what}, {value!r}: a Python number has no C type; give '{kind}={value}' or np.{width}({value})"
        )
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    return value


def _dims(dims: Dims | None) -> str | None:
    if dims is None:
        return None
    if isinstance(dims, str):
        return dims
    if not isinstance(dims, int | np.integer | Sequence | np.ndarray):
        raise GemmsimError(f"{dims!r} is no size of a grid, block or cluster: give a whole number, or up to three")
    return ",".join(map(str, dims if isinstance(dims, Sequence | np.ndarray) else (dims,)))
