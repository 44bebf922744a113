"""Specs -> a bundle: each kernel compiled once, by the compiler whose code gemmsim simulates. No GPU needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gemmsim.compile.kernel import build_kernel
from gemmsim.compile.source import ArgType, CudaKernel, PythonKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.launch.cases import checked_tunables
from gemmsim.launch.ladder import kernel_info, kernel_path
from gemmsim.support.errors import GemmsimError

from ..records import write_bytes
from .bundle import MANIFEST, Bundle, cubin_name, manifest
from .spec import CUBLAS, Spec, case_id

CUBLAS_DTYPES = {"f32": "f32", "tf32": "f32", "f16": "f16", "bf16": "bf16", "f64": "f64", "i8": "i32"}
PROBE_SOURCE = Path(__file__).with_name("placement.cu")


def prepare(specs: Iterable[Spec], arch: str, gpu: str, folder: Path) -> Bundle:
    """Write the bundle of `specs` for "sm_90" to a folder, and return it; gpu: the preset that predicts it.

    Raises GemmsimError, one line, for a case that does not fit its rung or a kernel that does not compile; the folder
    then has no manifest.
    """
    built: dict[tuple[str, str, tuple[tuple[str, int], ...]], dict[str, Any]] = {}
    cases: dict[str, dict[str, Any]] = {}
    counters = set()
    for spec in specs:
        case = _library(spec) if spec.kernel == CUBLAS else _rung(spec, arch, folder, built)
        case["gpu"], case["kind"] = gpu, "measured"
        cases[case["id"]] = case
        if spec.counters and spec.kernel != CUBLAS:
            counters.add(case["id"])
    if not cases:
        raise GemmsimError("nothing to measure: name at least one case, tiled@1024")
    probe = build_kernel(CudaKernel(PROBE_SOURCE.read_text(), PROBE_SOURCE, "placement"), arch).cubin
    write_bytes(folder / "placement.cubin", probe)
    # Small problems first: what a time limit cuts off is then the least.
    ordered = sorted(cases.values(), key=lambda c: c["problem"]["m"] * c["problem"]["n"] * c["problem"]["k"])
    bundle = Bundle(folder, arch, gpu, tuple(ordered), frozenset(counters), "placement.cubin")
    write_bytes(folder / MANIFEST, manifest(bundle))
    return bundle


def _rung(
    spec: Spec, arch: str, folder: Path, built: dict[tuple[str, str, tuple[tuple[str, int], ...]], dict[str, Any]]
) -> dict[str, Any]:
    info = kernel_info(spec.kernel)
    tunables = checked_tunables(info, spec.tunables)
    dtype = spec.dtype or info.dtypes[0]
    if dtype not in info.dtypes:
        raise GemmsimError(f"dtype {dtype}: {info.name} takes {' or '.join(info.dtypes)}")
    result = info.result_dtype(dtype)
    try:
        shape = info.launch(spec.m, spec.n, spec.k, tunables)
    except ValueError as error:
        raise GemmsimError(f"kernel '{info.name}': {error}") from None
    zeros = info.zeros(spec.m, spec.n, spec.k, tunables) if info.zeros else {}
    key = (info.name, dtype, tuple(tunables.items()))
    if key not in built:
        types = {"A": ArgType(dtype, 2), "B": ArgType(dtype, 2), "C": ArgType(result, 2), "bias": ArgType(result, 1)}
        types |= {name: ArgType(kind, len(dims)) for name, (kind, dims) in zeros.items()}
        source = PythonKernel(
            path=kernel_path(info),
            function=info.build.__name__,
            signature=tuple(types.get(name, ArgType(result)) for name in info.arguments),
            tunables=tuple(tunables.items()),
            module=info.build.__module__,
        )
        entry = build_kernel(source, arch)
        sha256 = hashlib.sha256(entry.cubin).hexdigest()
        write_bytes(folder / cubin_name(sha256), entry.cubin)
        program = entry.program
        built[key] = {
            "name": info.name,
            "rung": True,
            "tunables": tunables,
            "abi": program.abi,
            "symbol": program.symbol,
            "arch": arch,
            "cubin_sha256": sha256,
            "registers": program.registers,
            "static_shared_bytes": program.static_shared_bytes,
            "local_bytes": program.local_bytes,
            "toolchain": tool_versions(),
        }
    problem = {
        "m": spec.m, "n": spec.n, "k": spec.k, "dtype": dtype, "result_dtype": result, "alpha": 1, "beta": 0,
        "b_transposed": info.b_transposed, "relu": info.relu, "operand_roundoff": info.operand_roundoff,
    }  # fmt: skip
    launch = {
        "grid": list(shape.grid),
        "block": list(shape.block),
        "dynamic_shared_bytes": shape.dynamic_shared_bytes,
        "arguments": list(info.arguments),
    }
    if zeros:
        launch["zeros"] = {name: {"dtype": kind, "shape": list(dims)} for name, (kind, dims) in zeros.items()}
    name = case_id(info.name, dtype, tunables, spec.m, spec.n, spec.k)
    return {"id": name, "subject": built[key], "problem": problem, "launch": launch}


def _library(spec: Spec) -> dict[str, Any]:
    dtype = spec.dtype or "f32"
    if dtype not in CUBLAS_DTYPES:
        raise GemmsimError(f"dtype {dtype}: cublas takes {', '.join(CUBLAS_DTYPES)}")
    stored = "f32" if dtype == "tf32" else dtype
    # cuBLAS returns halves for halves; their sums are in fp32.
    problem = {
        "m": spec.m, "n": spec.n, "k": spec.k, "dtype": stored, "result_dtype": CUBLAS_DTYPES[dtype],
        "alpha": 1, "beta": 0, "operand_roundoff": 2.0**-11 if dtype == "tf32" else 0,
    }  # fmt: skip
    subject = {"name": "cublas_tf32" if dtype == "tf32" else CUBLAS, "rung": False, "abi": "library"}
    return {
        "id": case_id(CUBLAS, dtype, {}, spec.m, spec.n, spec.k),
        "subject": subject,
        "problem": problem,
    }
