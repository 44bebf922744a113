"""Makes the launch that predicts a record: the same machine code, grid, blocks and problem."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

from gemmsim.compile.source import CubinKernel, CudaKernel, KernelSource
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.arrays import Contents, array_argument
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.recorded import listed_parameters
from gemmsim.launch.spec import SUSTAINED, GemmCheck, Labels, LaunchSpec
from gemmsim.launch.tensor_maps import box_map
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument, Launch, Packed

from .case import Case
from .files import CUDA_FOLDER, read_cubin

DEFAULT_ARGUMENTS = ["A", "B", "C", "alpha", "beta"]


def launch_of(case: Case, seed: int = 0) -> LaunchSpec:
    """Return the launch that predicts a case, with random operands.

    Raises GemmsimError where the record names no code that can be executed, or where that code is missing.
    """
    if case.cubin is None and case.rung:
        rung = LadderCase(case.name, case.m, case.n, case.k, case.dtype, case.tunables, seed=seed)
        return ladder_launch(rung, _gpu(case.gpu, ()))
    launch = case.data["launch"]
    names = launch.get("arguments", DEFAULT_ARGUMENTS)
    arguments = _arguments(case, names)
    maps = launch.get("maps", {})
    args = tuple(arguments[name] for name in names if name not in maps)
    cluster = tuple(launch["cluster"]) if "cluster" in launch else None
    shared, parameters = launch.get("dynamic_shared_bytes", 0), _parameters(launch, args)
    return LaunchSpec(
        kernel=_kernel(case),
        launch=Launch(case.grid, case.block, args, shared, parameters, cluster=cluster),
        gpu=_gpu(case.gpu, tuple(case.data.get("settings", ()))),
        labels=Labels(case.name, "", case.m, case.n, case.k, case.tunables),
        verify=_check(case.data["problem"], names),
        seed=seed,
    )


def timed_launch(case: Case, way: str) -> LaunchSpec:
    """Return the launch that predicts the times of a case that were taken in the way `way`: with the caches, the code
    and the clock that the launches before it left. Raises GemmsimError as `launch_of` does.
    """
    request = launch_of(case)
    settings = request.settings
    if case.in_a_row(way):
        settings = replace(settings, clock=SUSTAINED, warm_code=True)
    return replace(request, warm_caches=case.warm(way), settings=settings)


def _parameters(launch: dict[str, Any], args: tuple[Argument, ...]) -> tuple[int | Packed, ...] | None:
    maps, names = launch.get("maps", {}).values(), launch.get("arguments", DEFAULT_ARGUMENTS)
    if not maps:
        return listed_parameters(launch)
    positions = [names.index(one["array"]) for one in maps]
    boxes = [tuple(one["box"]) for one in maps]
    return (*range(len(args)), *(box_map(args[at], at, box) for at, box in zip(positions, boxes, strict=True)))


@cache
def _gpu(name: str, settings: tuple[str, ...]) -> GpuSpec:
    return load_gpu(name, settings)


def _kernel(case: Case) -> KernelSource:
    subject = case.data["subject"]
    if case.cubin is not None:
        return CubinKernel(read_cubin(case.cubin), case.cubin, subject["symbol"], subject["abi"])
    if "cuda" in subject:
        path = CUDA_FOLDER / subject["cuda"]["file"]
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise GemmsimError(f"record '{case.id}': cannot read {path}: {error.strerror}") from None
        return CudaKernel(text, path, subject["cuda"].get("entry"), tuple(subject["cuda"].get("options", ())))
    raise GemmsimError(f"record '{case.id}' names no code that could be simulated ({case.name})")


def _arguments(case: Case, names: list[str]) -> dict[str, Argument]:
    """Return by name all scalars, the arrays of one value, and those of A, B, C and bias that are in `names`."""
    problem = case.data["problem"]
    m, n, k, dtype, result = case.m, case.n, case.k, case.dtype, case.result_dtype
    alpha, beta = problem.get("alpha", 1), problem.get("beta", 0)
    cast = float if result.startswith(("f", "b")) else int
    arguments = {name: Argument("i32", (), size) for name, size in (("m", m), ("n", n), ("k", k))}
    arguments |= {"alpha": Argument(result, (), cast(alpha)), "beta": Argument(result, (), cast(beta))}
    shape_b = (n, k) if problem.get("b_transposed") else (k, n)
    for name, kind, dims in (
        ("A", dtype, (m, k)),
        ("B", dtype, shape_b),
        ("C", result, (m, n)),
        ("bias", result, (n,)),
    ):
        if name in names:
            # Published kernels compute beta * C even where beta is 0. Our own must not read C then; a C of NaN shows
            # any that does.
            unread = name == "C" and not beta and result in ("f16", "f32", "f64") and case.kind == "measured"
            contents = Contents(math.nan) if unread else Contents()
            arguments[name] = array_argument(f"matrix {name} of {case.id}", kind, dims, contents)
    for name, of in case.data["launch"].get("zeros", {}).items():
        contents = Contents(of.get("value", 0))
        arguments[name] = array_argument(f"array {name} of {case.id}", of["dtype"], tuple(of["shape"]), contents)
    return arguments


def _check(problem: dict[str, Any], names: list[str]) -> GemmCheck:
    return GemmCheck(
        names.index("A"),
        names.index("B"),
        names.index("C"),
        float(problem.get("alpha", 1)),
        float(problem.get("beta", 0)),
        b_transposed=problem.get("b_transposed", False),
        bias=names.index("bias") if "bias" in names else None,
        relu=problem.get("relu", False),
        operand_roundoff=problem.get("operand_roundoff", 0.0),
    )
