"""From the options of `analyze` to an AnalyzeRequest: what can be checked before compiling is checked here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gemmsim.cli.parse import check_array_size, parse_argument, parse_assignments, parse_dims, random_array
from gemmsim.cli.targets import ladder_source, target_source
from gemmsim.errors import GemmsimError, nearest
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.ladder import kernel_info
from gemmsim.request import DEFAULT_MAX_INSTRUCTIONS, AnalyzeRequest, GemmCheck, Labels, Sampling
from gemmsim.trace.types import Argument, Launch

if TYPE_CHECKING:
    from gemmsim.ladder import KernelInfo


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `analyze`, as typed; None where not given."""

    target: str | None
    kernel: str | None
    entry: str | None
    size: int | None
    m: int | None
    n: int | None
    k: int | None
    gpu: str
    gpu_sets: tuple[str, ...]
    kernel_sets: tuple[str, ...]
    alpha: float
    beta: float
    grid: str | None
    block: str | None
    shared: int
    args: tuple[str, ...]
    verify: str | None
    full: bool
    max_instructions: int | None
    seed: int
    no_cache: bool
    dtype: str | None = None


def ladder_request(options: Options) -> AnalyzeRequest:
    """A built-in kernel: A and B random, C random too, or NaN where beta is 0 and nothing may read it."""
    own = {"--grid": options.grid, "--block": options.block, "--arg": options.args, "--entry": options.entry}
    for name, value in own.items():
        if value:
            raise GemmsimError(f"{name} is for a kernel of your own; --kernel {options.kernel} takes it from the size")
    info = kernel_info(str(options.kernel))
    sizes = _sizes(options)
    if sizes is None:
        raise GemmsimError("no problem size: give --size N, or --m, --n and --k")
    m, n, k = sizes
    tunables = _tunables(info, options.kernel_sets)
    try:
        shape = info.launch(m, n, k, tunables)
    except ValueError as error:
        raise GemmsimError(f"kernel '{info.name}': {error}") from None
    dtype = _dtype(info, options.dtype)
    result = info.result_dtype(dtype)
    alpha, beta = (_scalar(name, value, result) for name, value in (("alpha", options.alpha), ("beta", options.beta)))
    shape_b = (n, k) if info.b_transposed else (k, n)
    for name, kind, dims in (("A", dtype, (m, k)), ("B", dtype, shape_b), ("C", result, (m, n))):
        check_array_size(f"matrix {name} of M={m}, N={n}, K={k}", kind, dims)
    random = _random(options)
    a, b, c = (random_array(kind, dims, random) for kind, dims in ((dtype, (m, k)), (dtype, shape_b), (result, (m, n))))
    if not beta and result.startswith("f"):
        c = np.full_like(c, np.nan)
    args = (
        Argument(dtype, (m, k), a),
        Argument(dtype, shape_b, b),
        Argument(result, (m, n), c),
        Argument(result, (), alpha),
        Argument(result, (), beta),
    )
    return AnalyzeRequest(
        kernel=ladder_source(info, tunables, args),
        launch=Launch(shape.grid, shape.block, args, shape.dynamic_shared_bytes + _shared(options)),
        gpu=_gpu(options),
        labels=Labels(info.name, info.title, m, n, k, tunables),
        verify=GemmCheck(0, 1, 2, options.alpha, options.beta, info.b_transposed),
        sampling=_sampling(options),
        use_cache=not options.no_cache,
    )


def target_request(options: Options) -> AnalyzeRequest:
    """A kernel of the user's own."""
    target = str(options.target)
    if options.dtype is not None:
        raise GemmsimError("--dtype is for the built-in kernels: --arg says what a kernel of your own takes")
    if options.kernel_sets:
        raise GemmsimError("--set-kernel is for the built-in kernels: constants of your own belong in your source")
    if options.grid is None or options.block is None:
        missing = "--grid" if options.grid is None else "--block"
        raise GemmsimError(f"{missing} is missing: {target} needs --grid X,Y,Z and --block X,Y,Z")
    random = _random(options)
    args = tuple(parse_argument(text, random) for text in options.args)
    launch = Launch(parse_dims(options.grid, "--grid"), parse_dims(options.block, "--block"), args, _shared(options))
    sizes = _sizes(options)
    check = None
    if options.verify == "gemm":
        check, sizes = _gemm_check(args, sizes, options.alpha, options.beta)
    source, name = target_source(target, options.entry, args)
    m, n, k = sizes if sizes is not None else (None, None, None)
    return AnalyzeRequest(
        kernel=source,
        launch=launch,
        gpu=_gpu(options),
        labels=Labels(name, target, m, n, k),
        verify=check,
        sampling=_sampling(options),
        use_cache=not options.no_cache,
    )


def _dtype(info: KernelInfo, wanted: str | None) -> str:
    if wanted is None:
        return info.dtypes[0]
    if wanted not in info.dtypes:
        raise GemmsimError(f"--dtype {wanted}: {info.name} takes {' or '.join(info.dtypes)}")
    return wanted


def _scalar(name: str, value: float, dtype: str) -> float | int:
    if dtype.startswith("f"):
        return value
    if not value.is_integer():
        raise GemmsimError(f"--{name} {value} must be an integer: C is {dtype}")
    return int(value)


def _sizes(options: Options) -> tuple[int, int, int] | None:
    """(m, n, k), None where no size was given."""
    given = {"--m": options.m, "--n": options.n, "--k": options.k}
    for name, value in {"--size": options.size, **given}.items():
        if value is not None and value < 1:
            raise GemmsimError(f"{name} {value} is not a size: it must be at least 1")
    missing = [name for name, value in given.items() if value is None]
    if options.size is not None:
        if len(missing) < 3:
            raise GemmsimError("--size stands for --m, --n and --k together: give one or the others")
        return options.size, options.size, options.size
    if len(missing) == 3:
        return None
    if options.m is None or options.n is None or options.k is None:
        raise GemmsimError(f"{' and '.join(missing)} missing: give --size N, or all of --m, --n and --k")
    return options.m, options.n, options.k


def _tunables(info: KernelInfo, texts: tuple[str, ...]) -> dict[str, int]:
    known = {tunable.name: tunable for tunable in info.tunables}
    chosen = {tunable.name: tunable.default for tunable in info.tunables}
    for key, value in parse_assignments(texts, "--set-kernel").items():
        if key not in known:
            has = f"its tunables are {', '.join(known)}" if known else "it has no tunables"
            raise GemmsimError(f"kernel '{info.name}' has no tunable '{key}'{nearest(key, known)}: {has}")
        allowed = known[key].allowed
        if value not in map(str, allowed):
            raise GemmsimError(f"--set-kernel {key}={value}: {info.name} takes {key} of {', '.join(map(str, allowed))}")
        chosen[key] = int(value)
    return chosen


def _gemm_check(
    args: tuple[Argument, ...], sizes: tuple[int, int, int] | None, alpha: float, beta: float
) -> tuple[GemmCheck, tuple[int, int, int]]:
    """The first three arrays are A, B and C, two-dimensional, or flat where the sizes are given."""
    arrays = [position for position, argument in enumerate(args) if argument.shape]
    if len(arrays) < 3:
        raise GemmsimError(f"--verify gemm takes the first three arrays as A, B, C, but {len(arrays)} were given")
    a, b, c = arrays[:3]
    shape_a, shape_b, shape_c = (args[position].shape for position in (a, b, c))
    if sizes is None:
        if not all(len(shape) == 2 for shape in (shape_a, shape_b, shape_c)):
            raise GemmsimError("--verify gemm cannot tell the sizes from these arrays: add --m, --n and --k")
        sizes = shape_c[0], shape_c[1], shape_a[1]
    m, n, k = sizes
    for name, shape, rows, columns in (("A", shape_a, m, k), ("B", shape_b, k, n), ("C", shape_c, m, n)):
        if shape != (rows, columns) and not (len(shape) == 1 and math.prod(shape) == rows * columns):
            raise GemmsimError(
                f"--verify gemm: the arrays are A, B, C in order; "
                f"{name} is {list(shape)}, but M={m}, N={n}, K={k} need [{rows},{columns}]"
            )
    return GemmCheck(a, b, c, alpha, beta), sizes


def _gpu(options: Options) -> GpuSpec:
    return load_gpu(options.gpu, options.gpu_sets)


def _sampling(options: Options) -> Sampling:
    limit = DEFAULT_MAX_INSTRUCTIONS if options.max_instructions is None else options.max_instructions
    if limit < 1:
        raise GemmsimError(f"--max-instructions {limit} must be at least 1")
    return Sampling(options.full, limit)


def _random(options: Options) -> np.random.Generator:
    if options.seed < 0:
        raise GemmsimError(f"--seed {options.seed} must be 0 or more")
    return np.random.default_rng(options.seed)


def _shared(options: Options) -> int:
    if options.shared < 0:
        raise GemmsimError(f"--shared {options.shared} must be 0 or more bytes")
    return options.shared
