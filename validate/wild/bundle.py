"""Makes a bundle of foreign kernels, which `python -m validate.measure` measures on a GPU.

Which cases of the manifest are measured, and at which sizes, stands in `measured.toml`.
"""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemmsim.compile.kernel import Built, build_kernel
from gemmsim.compile.source import CudaKernel
from gemmsim.support.errors import GemmsimError

from ..measure.bundle import MANIFEST, Bundle, manifest
from ..measure.prepare import PROBE_SOURCE
from ..measure.spec import case_id
from ..records.files import cubin_name, write_bytes
from .kernels import compiler_version, prepared
from .manifest import Case

MEASURED = Path(__file__).with_name("measured.toml")
ARCH, GPU = "sm_90", "h200"
_SCRATCH = {"scratch": {"dtype": "i32", "shape": [1]}}  # what Triton's kernels get for memory that they do not use


def make_bundle(cases: Sequence[Case], root: Path, folder: Path) -> Bundle:
    """Write the bundle of `measured.toml` to a folder, and return it.

    cases  all of the manifest
    root   folder with the checkouts

    Raises GemmsimError where a kernel is not in the manifest, or cannot be compiled.
    """
    by_id = {case.id: case for case in cases}
    records = []
    for wanted in tomllib.loads(MEASURED.read_text(encoding="utf-8"))["kernel"]:
        if wanted["case"] not in by_id:
            raise GemmsimError(f"{MEASURED.name}: the manifest has no case '{wanted['case']}'")
        for size in wanted["sizes"]:
            records.append(_record(by_id[wanted["case"]], wanted, size, root, folder))
    probe = build_kernel(CudaKernel(PROBE_SOURCE.read_text(), PROBE_SOURCE, "placement"), ARCH).cubin
    write_bytes(folder / "placement.cubin", probe)
    ordered = sorted(records, key=lambda record: record["problem"]["m"])
    bundle = Bundle(folder, ARCH, GPU, tuple(ordered), frozenset(one["id"] for one in ordered), "placement.cubin")
    write_bytes(folder / MANIFEST, manifest(bundle))
    return bundle


def _record(case: Case, wanted: dict[str, Any], size: int, root: Path, folder: Path) -> dict[str, Any]:
    """Compile a case at a size, write its cubin, and return its record without results."""
    case = replace(case, sizes={**case.sizes, "M": size, "N": size, "K": size})
    with tempfile.TemporaryDirectory(prefix="gemmsim-wild-") as name:
        made = prepared(case, ARCH, root, Path(name))
        built = build_kernel(made.source, ARCH)
    sha256 = hashlib.sha256(built.cubin).hexdigest()
    write_bytes(folder / cubin_name(sha256), built.cubin)
    zeros = dict(_SCRATCH) if "scratch" in wanted["arguments"] else {}
    if wanted.get("reads_c"):
        zeros["C"] = {"dtype": wanted["result"], "shape": [size, size]}
    launch: dict[str, Any] = {
        "grid": list(made.launch.grid),
        "block": list(made.launch.block),
        "dynamic_shared_bytes": made.launch.dynamic_shared_bytes,
        "arguments": wanted["arguments"],
    }
    return {
        "id": case_id(wanted["name"], wanted["dtype"], {}, size, size, size),
        "kind": "measured",
        "gpu": GPU,
        "subject": _subject(case, wanted["name"], built, sha256),
        "problem": {
            "m": size,
            "n": size,
            "k": size,
            "dtype": wanted["dtype"],
            "result_dtype": wanted["result"],
            "alpha": 1,
            "beta": 0,
            "operand_roundoff": wanted.get("operand_roundoff", 0),
        },
        "launch": launch | ({"zeros": zeros} if zeros else {}),
        "source": {
            "title": f"{case.repository.name} at {case.repository.commit}",
            "url": f"https://github.com/{case.repository.name}",
            "where": case.file,
            "licence": case.repository.licence,
            "notes": f"case {case.id} of validate/wild, M = N = K = {size}",
        },
    }


def _subject(case: Case, name: str, built: Built, sha256: str) -> dict[str, Any]:
    program = built.program
    return {
        "name": name,
        "rung": False,
        "tunables": {},
        "abi": "c",
        "symbol": program.symbol,
        "arch": ARCH,
        "cubin_sha256": sha256,
        "registers": program.registers,
        "static_shared_bytes": program.static_shared_bytes,
        "local_bytes": program.local_bytes,
        "toolchain": {**program.toolchain, case.compiler: compiler_version(case.compiler)},
    }
