"""A case of the ladder: a rung, its constants, a problem size and a type; and the request that predicts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gemmsim.compile.source import ArgType, PythonKernel
from gemmsim.gpu import GpuSpec
from gemmsim.launch.arrays import check_array_size, drawn, filled
from gemmsim.launch.ladder import kernel_info, kernel_path
from gemmsim.launch.request import AnalyzeRequest, GemmCheck, Labels, Sampling
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.trace.types import Argument, Launch

if TYPE_CHECKING:
    from gemmsim.launch.ladder import KernelInfo

FROM_A_SAMPLE = Sampling()


@dataclass(frozen=True)
class LadderCase:
    """C = alpha A @ B + beta C by a rung of the ladder.

    dtype                 of A and B, the rung's default where None
    tunables              those that differ from the rung's defaults
    dynamic_shared_bytes  a block, beyond what the rung takes
    seed                  of the random matrices; C is NaN where beta is 0 and nothing may read it
    warm_caches           L2 begins as an identical launch just before has left it
    """

    kernel: str
    m: int
    n: int
    k: int
    dtype: str | None = None
    tunables: dict[str, int] = field(default_factory=dict)
    alpha: float = 1.0
    beta: float = 0.0
    dynamic_shared_bytes: int = 0
    seed: int = 0
    warm_caches: bool = False


def ladder_request(
    case: LadderCase, gpu: GpuSpec, sampling: Sampling = FROM_A_SAMPLE, use_cache: bool = True
) -> AnalyzeRequest:
    """What predicts a case on a GPU. Raises GemmsimError, one line, for whatever does not fit the rung."""
    info = kernel_info(case.kernel)
    m, n, k = case.m, case.n, case.k
    tunables = checked_tunables(info, case.tunables)
    try:
        shape = info.launch(m, n, k, tunables)
    except ValueError as error:
        raise GemmsimError(f"kernel '{info.name}': {error}") from None
    dtype = _checked_dtype(info, case.dtype)
    result = info.result_dtype(dtype)
    alpha, beta = (_scalar(name, value, result) for name, value in (("alpha", case.alpha), ("beta", case.beta)))
    shape_b = (n, k) if info.b_transposed else (k, n)
    operands = {"A": (dtype, (m, k)), "B": (dtype, shape_b), "C": (result, (m, n)), "bias": (result, (n,))}
    random = np.random.default_rng(case.seed)
    by_name = {"alpha": Argument(result, (), alpha), "beta": Argument(result, (), beta)}
    for name, (kind, dims) in operands.items():
        if name in info.arguments:
            check_array_size(f"matrix {name} of M={m}, N={n}, K={k}", kind, dims)
            unread = name == "C" and not beta and result.startswith("f")
            values = filled(kind, dims, np.nan) if unread else drawn(kind, dims, random)
            by_name[name] = Argument(kind, dims, values)
    for name, (kind, dims) in (info.zeros(m, n, k, tunables) if info.zeros else {}).items():
        check_array_size(f"array {name} for M={m}, N={n}, K={k}", kind, dims)
        by_name[name] = Argument(kind, dims, filled(kind, dims, 0))
    args = tuple(by_name[name] for name in info.arguments)
    return AnalyzeRequest(
        kernel=ladder_source(info, tunables, args),
        launch=Launch(shape.grid, shape.block, args, shape.dynamic_shared_bytes + case.dynamic_shared_bytes),
        gpu=gpu,
        labels=Labels(info.name, info.title, m, n, k, tunables),
        verify=gemm_check(info, case.alpha, case.beta),
        sampling=sampling,
        use_cache=use_cache,
        warm_caches=case.warm_caches,
    )


def gemm_check(info: KernelInfo, alpha: float, beta: float) -> GemmCheck:
    """What a rung's C is compared with, its arguments in order."""
    a, b, c = (info.arguments.index(name) for name in "ABC")
    bias = info.arguments.index("bias") if "bias" in info.arguments else None
    return GemmCheck(a, b, c, alpha, beta, info.b_transposed, bias, info.relu, info.operand_roundoff)


def ladder_source(info: KernelInfo, tunables: dict[str, int], args: Sequence[Argument]) -> PythonKernel:
    return PythonKernel(
        path=kernel_path(info),
        function=info.build.__name__,
        signature=signature(args),
        tunables=tuple(tunables.items()),
        module=info.build.__module__,
    )


def signature(args: Sequence[Argument]) -> tuple[ArgType, ...]:
    return tuple(ArgType(argument.dtype, len(argument.shape)) for argument in args)


def checked_tunables(info: KernelInfo, wanted: dict[str, int]) -> dict[str, int]:
    """All tunables of a rung, defaults included."""
    known = {tunable.name: tunable for tunable in info.tunables}
    for key, value in wanted.items():
        if key not in known:
            has = f"its tunables are {', '.join(known)}" if known else "it has no tunables"
            raise GemmsimError(f"kernel '{info.name}' has no tunable '{key}'{nearest(key, known)}: {has}")
        if value not in known[key].allowed:
            allowed = ", ".join(map(str, known[key].allowed))
            raise GemmsimError(f"{key}={value}: {info.name} takes {key} of {allowed}")
    return {tunable.name: wanted.get(tunable.name, tunable.default) for tunable in info.tunables}


def _checked_dtype(info: KernelInfo, wanted: str | None) -> str:
    if wanted is None:
        return info.dtypes[0]
    if wanted not in info.dtypes:
        raise GemmsimError(f"dtype {wanted}: {info.name} takes {' or '.join(info.dtypes)}")
    return wanted


def _scalar(name: str, value: float, dtype: str) -> float | int:
    if dtype.startswith("f"):
        return value
    if not float(value).is_integer():
        raise GemmsimError(f"{name} {value} must be an integer: C is {dtype}")
    return int(value)
