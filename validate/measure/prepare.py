"""Makes a bundle of cases to measure; this needs no GPU.

Each kernel is compiled once, by the compiler whose code gemmsim simulates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gemmsim.compile.kernel import build_kernel
from gemmsim.compile.source import CudaKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.launch.cases import ladder_source
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument

from ..records.files import cubin_name, write_bytes
from .bundle import MANIFEST, Bundle, manifest
from .rung import Rung, rung_of
from .spec import CUBLAS, Spec, case_id

CUBLAS_DTYPES = {"f32": "f32", "tf32": "f32", "f16": "f16", "bf16": "bf16", "e4m3": "bf16", "f64": "f64", "i8": "i32"}
PROBE_SOURCE = Path(__file__).with_name("placement.cu")


def prepare(specs: Iterable[Spec], arch: str, gpu: str, folder: Path) -> Bundle:
    """Write the bundle of `specs` for the architecture `arch` ("sm_90") to a folder, and return it.

    `gpu` is the preset that predicts the cases. Raises GemmsimError, one line, for a case of an unknown kernel, or
    with a dtype, tunable or size that the kernel does not take, or where a kernel does not compile; the folder then has
    no manifest.
    """
    subjects: dict[str, dict[str, Any]] = {}
    cases: dict[str, dict[str, Any]] = {}
    counters = set()
    for spec in specs:
        if spec.kernel == CUBLAS:
            case = _library_case(spec)
        else:
            rung, case = rung_of(spec)
            key = case_id(spec.kernel, rung.dtype, rung.tunables, 0, 0, 0)
            if key not in subjects:
                subjects[key] = _compiled(rung, arch, folder)
            case["subject"] = subjects[key]
            if spec.counters:
                counters.add(case["id"])
        cases[case["id"]] = case | {"gpu": gpu, "kind": "measured"}
    if not cases:
        raise GemmsimError("nothing to measure: name at least one case, tiled@1024")
    probe = build_kernel(CudaKernel(PROBE_SOURCE.read_text(), PROBE_SOURCE, "placement"), arch).cubin
    write_bytes(folder / "placement.cubin", probe)
    # Small problems come first, so that a time limit cuts off as few cases as possible.
    ordered = sorted(cases.values(), key=lambda c: c["problem"]["m"] * c["problem"]["n"] * c["problem"]["k"])
    bundle = Bundle(folder, arch, gpu, tuple(ordered), frozenset(counters), "placement.cubin")
    write_bytes(folder / MANIFEST, manifest(bundle))
    return bundle


def _compiled(rung: Rung, arch: str, folder: Path) -> dict[str, Any]:
    """Compile a kernel of the ladder, write its cubin to the folder, and return the field `subject` of its records."""
    info = rung.info
    if info.cuda and arch not in info.cuda.archs:
        raise GemmsimError(f"kernel '{info.name}' is for {' and '.join(info.cuda.archs)}, not for {arch}")
    operand, result = (rung.dtype, (1, 1)), rung.result_dtype
    types = {"A": operand, "B": operand, "C": (result, (1, 1)), "bias": (result, (1,)), **rung.zeros}
    args = [Argument(*types.get(name, (result, ())), 0) for name in info.arguments]
    entry = build_kernel(ladder_source(info, rung.tunables, args), arch)
    sha256 = hashlib.sha256(entry.cubin).hexdigest()
    write_bytes(folder / cubin_name(sha256), entry.cubin)
    program = entry.program
    return {
        "name": info.name,
        "rung": True,
        "tunables": rung.tunables,
        "abi": program.abi,
        "symbol": program.symbol,
        "arch": arch,
        "cubin_sha256": sha256,
        "registers": program.registers,
        "static_shared_bytes": program.static_shared_bytes,
        "local_bytes": program.local_bytes,
        "toolchain": tool_versions(),
    }


def _library_case(spec: Spec) -> dict[str, Any]:
    dtype = spec.dtype or "f32"
    if dtype not in CUBLAS_DTYPES:
        raise GemmsimError(f"dtype {dtype}: cublas takes {', '.join(CUBLAS_DTYPES)}")
    stored = "f32" if dtype == "tf32" else dtype
    # cuBLAS returns a C of halves for operands of halves, and is asked for bf16 for fp8; it makes the sums in fp32.
    problem = {
        "m": spec.m, "n": spec.n, "k": spec.k, "dtype": stored, "result_dtype": CUBLAS_DTYPES[dtype],
        "alpha": 1, "beta": 0, "operand_roundoff": 2.0**-11 if dtype == "tf32" else 0,
    }  # fmt: skip
    if dtype == "e4m3":  # cuBLAS takes bytes along K only
        problem["b_transposed"] = True
    subject = {"name": "cublas_tf32" if dtype == "tf32" else CUBLAS, "rung": False, "abi": "library"}
    name = case_id(CUBLAS, dtype, {}, spec.m, spec.n, spec.k)
    return {"id": name, "subject": subject, "problem": problem}
