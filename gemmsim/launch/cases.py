"""Makes launches of the built-in kernels. Together they are called the ladder, and each of them a rung.

A `LadderCase` names the kernel, its constants (tunables), the problem size and the type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gemmsim.compile.source import ArgType, CudaKernel, KernelSource, PythonKernel
from gemmsim.gpu import GpuSpec
from gemmsim.launch.arrays import Contents, array_argument
from gemmsim.launch.ladder import kernel_info, kernel_path
from gemmsim.launch.spec import USUAL_SETTINGS, GemmCheck, Labels, LaunchSpec, Settings
from gemmsim.launch.tensor_maps import box_map
from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.trace.types import Argument, Launch, Packed

if TYPE_CHECKING:
    from gemmsim.launch.ladder import KernelInfo


@dataclass(frozen=True)
class LadderCase:
    """One GEMM, C = alpha A @ B + beta C, by a built-in kernel.

    kernel                name of the kernel
    dtype                 type of A and B; None: the kernel's default
    tunables              {name: value} of the tunables that differ from the kernel's defaults
    dynamic_shared_bytes  bytes of dynamic shared memory that a block gets beyond what the kernel takes
    seed                  what the generator of the random matrices starts from; where beta is 0, a C of floats is
                          filled with NaN instead, so that a kernel that reads it gives itself away
    warm_caches           whether L2 begins as an identical launch just before has left it; else it begins empty
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


def ladder_launch(case: LadderCase, gpu: GpuSpec, settings: Settings = USUAL_SETTINGS) -> LaunchSpec:
    """Make the launch of a case on a GPU. Raises GemmsimError, one line, for whatever the built-in kernel refuses."""
    info = kernel_info(case.kernel)
    m, n, k = case.m, case.n, case.k
    tunables = checked_tunables(info, case.tunables)
    if case.dynamic_shared_bytes < 0:
        raise GemmsimError(f"--shared {case.dynamic_shared_bytes} must be 0 or more bytes")
    try:
        shape = info.launch(m, n, k, tunables)
    except ValueError as error:
        raise GemmsimError(f"kernel '{info.name}': {error}") from None
    dtype = checked_dtype(info, case.dtype)
    args = _arguments(info, case, dtype, info.zeros(m, n, k, tunables) if info.zeros else {})
    if info.cuda and gpu.arch not in info.cuda.archs:
        raise GemmsimError(f"kernel '{info.name}' is for {' and '.join(info.cuda.archs)}: {gpu.name} is {gpu.arch}")
    shared_bytes = shape.dynamic_shared_bytes + case.dynamic_shared_bytes
    return LaunchSpec(
        kernel=ladder_source(info, tunables, args),
        launch=Launch(shape.grid, shape.block, args, shared_bytes, map_parameters(info, tunables, args)),
        gpu=gpu,
        labels=Labels(info.name, info.title, m, n, k, tunables),
        verify=gemm_check(info, case.alpha, case.beta),
        settings=settings,
        warm_caches=case.warm_caches,
        seed=case.seed,
    )


def _arguments(
    info: KernelInfo, case: LadderCase, dtype: str, zeros: dict[str, tuple[str, tuple[int, ...]]]
) -> tuple[Argument, ...]:
    """Make the arguments of a built-in kernel, in its order.

    zeros  {name: (dtype, shape)} of the arrays of zeros that the kernel asks for, besides matrices, bias and scalars
    """
    m, n, k = case.m, case.n, case.k
    result = info.result_dtype(dtype)
    scalars = {"alpha": case.alpha, "beta": case.beta}
    sizes = {"m": m, "n": n, "k": k}
    maps = info.cuda.maps(dtype, checked_tunables(info, case.tunables)) if info.cuda else {}
    shape_b = (n, k) if info.b_transposed else (k, n)
    operands = {"A": (dtype, (m, k)), "B": (dtype, shape_b), "C": (result, (m, n)), "bias": (result, (n,))}
    unread = "C" if not case.beta and result.startswith("f") else None
    found = []
    for name in (one for one in info.arguments if one not in maps):
        if name in sizes:
            found.append(Argument("i32", (), sizes[name]))
        elif name in scalars:
            found.append(Argument(result, (), _scalar(name, scalars[name], result)))
        elif name in operands:
            contents = Contents(math.nan) if name == unread else Contents()
            found.append(array_argument(f"matrix {name} of M={m}, N={n}, K={k}", *operands[name], contents))
        else:
            found.append(array_argument(f"array {name} for M={m}, N={n}, K={k}", *zeros[name], Contents(0)))
    return tuple(found)


def gemm_check(info: KernelInfo, alpha: float, beta: float) -> GemmCheck:
    """Say how the C of a built-in kernel is checked. The positions in the result are indices of its arguments."""
    a, b, c = (info.arguments.index(name) for name in "ABC")
    bias = info.arguments.index("bias") if "bias" in info.arguments else None
    return GemmCheck(a, b, c, alpha, beta, info.b_transposed, bias, info.relu, info.operand_roundoff)


def map_parameters(
    info: KernelInfo, tunables: dict[str, int], args: Sequence[Argument]
) -> tuple[int | Packed, ...] | None:
    """Return the parameters of a built-in kernel that takes tensor maps, see `Launch.parameters`; None for others."""
    maps = info.cuda.maps(args[0].dtype, tunables) if info.cuda else {}
    if not maps:
        return None
    positions = [info.arguments.index(one.array) for one in maps.values()]
    boxes = [one.box for one in maps.values()]
    return (*range(len(args)), *(box_map(args[at], at, box) for at, box in zip(positions, boxes, strict=True)))


def ladder_source(info: KernelInfo, tunables: dict[str, int], args: Sequence[Argument]) -> KernelSource:
    """Return the source of a built-in kernel, with values for all of its tunables and for the types of `args`.

    The first of `args` is A.
    """
    if info.cuda:
        path = kernel_path(info).with_name(info.cuda.file)
        macros = info.cuda.defines(args[0].dtype, tunables)
        (target,) = info.cuda.archs.values()
        options = (f"-arch={target}", "-std=c++17", *(f"-D{name}={value}" for name, value in macros.items()))
        return CudaKernel(path.read_text(encoding="utf-8"), path, info.cuda.entry, options, in_ladder=True)
    assert info.build
    return PythonKernel(
        path=kernel_path(info),
        function=info.build.__name__,
        signature=signature(args),
        tunables=tuple(tunables.items()),
        module=info.build.__module__,
    )


def signature(args: Sequence[Argument]) -> tuple[ArgType, ...]:
    """Return the types of the arguments, for which a kernel is compiled."""
    return tuple(ArgType(argument.dtype, len(argument.shape)) for argument in args)


def checked_tunables(info: KernelInfo, wanted: dict[str, int]) -> dict[str, int]:
    """Return all tunables of a built-in kernel with their values: from `wanted`, or else the default.

    Raises GemmsimError for a tunable or a value that the kernel does not have.
    """
    known = {tunable.name: tunable for tunable in info.tunables}
    for key, value in wanted.items():
        if key not in known:
            has = f"its tunables are {', '.join(known)}" if known else "it has no tunables"
            raise GemmsimError(f"kernel '{info.name}' has no tunable '{key}'{nearest(key, known)}: {has}")
        if value not in known[key].allowed:
            allowed = ", ".join(map(str, known[key].allowed))
            raise GemmsimError(f"{key}={value}: {info.name} takes {key} of {allowed}")
    return {tunable.name: wanted.get(tunable.name, tunable.default) for tunable in info.tunables}


def checked_dtype(info: KernelInfo, wanted: str | None) -> str:
    """Return the type of A and B: `wanted`, or the built-in kernel's default where `wanted` is None.

    Raises GemmsimError for a type that the kernel does not take.
    """
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
    limits = np.iinfo(DTYPES[dtype].numpy_name)
    if not limits.min <= value <= limits.max:
        raise GemmsimError(f"{name} {value:g} must be from {limits.min:,} to {limits.max:,}: C is {dtype}")
    return int(value)
