"""From the options of `analyze` to an AnalyzeRequest: what can be checked before compiling is checked here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from gemmsim.cli.parse import parse_argument, parse_assignments, parse_dims
from gemmsim.cli.sizes import problem_size
from gemmsim.cli.targets import target_source
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.cases import LadderCase, ladder_request
from gemmsim.launch.request import DEFAULT_MAX_INSTRUCTIONS, AnalyzeRequest, GemmCheck, Labels, Sampling
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument, Launch

WARM = "warm"


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
    caches: str = "cold"


def launch_request(options: Options) -> AnalyzeRequest:
    """Of a built-in kernel or a TARGET, whichever is given."""
    if (options.kernel is None) == (options.target is None):
        raise GemmsimError("give either --kernel NAME or a TARGET such as my.py:my_gemm (see gemmsim analyze --help)")
    return kernel_request(options) if options.kernel else target_request(options)


def kernel_request(options: Options) -> AnalyzeRequest:
    """A built-in kernel: A and B random, C random too, or NaN where beta is 0 and nothing may read it."""
    own = {"--grid": options.grid, "--block": options.block, "--arg": options.args, "--entry": options.entry}
    for name, value in own.items():
        if value:
            raise GemmsimError(f"{name} is for a kernel of your own; --kernel {options.kernel} takes it from the size")
    sizes = _sizes(options)
    if sizes is None:
        raise GemmsimError("no problem size: give --size N, or --m, --n and --k")
    case = LadderCase(
        str(options.kernel),
        *sizes,
        dtype=options.dtype,
        tunables=_tunables(options.kernel_sets),
        alpha=options.alpha,
        beta=options.beta,
        dynamic_shared_bytes=_shared(options),
        seed=_seed(options),
        warm_caches=options.caches == WARM,
    )
    return ladder_request(case, _gpu(options), _sampling(options), not options.no_cache)


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
    random = np.random.default_rng(_seed(options))
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
        warm_caches=options.caches == WARM,
    )


def _sizes(options: Options) -> tuple[int, int, int] | None:
    return problem_size(options.size, options.m, options.n, options.k)


def _tunables(texts: tuple[str, ...]) -> dict[str, int]:
    chosen = {}
    for key, value in parse_assignments(texts, "--set-kernel").items():
        if not re.fullmatch(r"-?[0-9]+", value):
            raise GemmsimError(f"--set-kernel {key}={value}: '{value}' is not an integer")
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
    return GemmCheck(a, b, c, alpha, beta, sizes=sizes), sizes


def _gpu(options: Options) -> GpuSpec:
    return load_gpu(options.gpu, options.gpu_sets)


def _sampling(options: Options) -> Sampling:
    limit = DEFAULT_MAX_INSTRUCTIONS if options.max_instructions is None else options.max_instructions
    if limit < 1:
        raise GemmsimError(f"--max-instructions {limit} must be at least 1")
    return Sampling(options.full, limit)


def _seed(options: Options) -> int:
    if options.seed < 0:
        raise GemmsimError(f"--seed {options.seed} must be 0 or more")
    return options.seed


def _shared(options: Options) -> int:
    if options.shared < 0:
        raise GemmsimError(f"--shared {options.shared} must be 0 or more bytes")
    return options.shared
