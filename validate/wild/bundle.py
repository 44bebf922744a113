"""Makes a bundle of foreign kernels, which `python -m validate.measure` measures on a GPU.

Which cases of the manifest are measured, and at which sizes, stands in `measured.toml`.
"""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from gemmsim.compile.kernel import Built, build_kernel
from gemmsim.compile.source import CudaKernel
from gemmsim.launch.arrays import Contents
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Packed

from ..measure.bundle import MANIFEST, Bundle, manifest
from ..measure.prepare import PROBE_SOURCE
from ..measure.spec import case_id
from ..records.files import cubin_name, write_bytes
from .kernels import Prepared, compiler_version, prepared
from .manifest import Case

MEASURED = Path(__file__).with_name("measured.toml")
ARCH, GPU = "sm_90", "h200"
_UNUSED = {"dtype": "i32", "shape": [1]}  # what Triton's kernels get for memory that they do not use
_OF_PROBLEM = ("A", "B", "C", "bias", "m", "n", "k", "alpha", "beta")


def make_bundle(cases: Sequence[Case], root: Path, folder: Path, patterns: Sequence[str] = ()) -> Bundle:
    """Write the bundle of `measured.toml` to a folder, and return it.

    cases     all of the manifest
    root      folder with the checkouts
    patterns  names of kernels of `measured.toml`, with wildcards; none means all

    Raises GemmsimError where a kernel is not in the manifest, or cannot be compiled, and where no name fits.
    """
    by_id = {case.id: case for case in cases}
    records = []
    kernels = tomllib.loads(MEASURED.read_text(encoding="utf-8"))["kernel"]
    chosen = [one for one in kernels if not patterns or any(fnmatch(one["name"], pattern) for pattern in patterns)]
    if not chosen:
        raise GemmsimError(f"{MEASURED.name} has no kernel like {', '.join(patterns)}")
    for wanted in chosen:
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
    sizes = {**case.sizes, **wanted.get("set", {}), "M": size, "N": size, "K": size}
    case = replace(case, sizes=sizes, architectures=(ARCH,))
    with tempfile.TemporaryDirectory(prefix="gemmsim-wild-") as name:
        made = prepared(case, ARCH, root, Path(name), lines=False)
        built = build_kernel(made.source, ARCH)
    sha256 = hashlib.sha256(built.cubin).hexdigest()
    write_bytes(folder / cubin_name(sha256), built.cubin)
    zeros = _constant_arrays(made, wanted, size)
    launch: dict[str, Any] = {
        "grid": list(made.launch.grid),
        "block": list(made.launch.block),
        "dynamic_shared_bytes": made.launch.dynamic_shared_bytes,
        "arguments": wanted["arguments"],
    }
    if made.launch.cluster is not None:
        launch["cluster"] = list(made.launch.cluster)
    if made.launch.parameters is not None:
        launch["parameters"] = recorded_parameters(made, wanted["arguments"], wanted.get("l2_promotion", 0))
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
            "alpha": wanted.get("alpha", 1),
            "beta": 0,
            "b_transposed": wanted.get("b_transposed", False),
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


def _constant_arrays(made: Prepared, wanted: dict[str, Any], size: int) -> dict[str, Any]:
    """Return `zeros` of the record: the arguments that are not the problem's, which hold one value."""
    source = {"dtype": wanted["result"], "shape": [size, size]}
    found: dict[str, Any] = {"C": source} if wanted.get("reads_c") else {}
    for name, argument in zip(wanted["arguments"], made.launch.args, strict=True):
        if name in _OF_PROBLEM or name in found:
            continue
        if name == "source" or not argument.shape:
            found[name] = source if name == "source" else _UNUSED
            continue
        value = argument.value.value if isinstance(argument.value, Contents) else None
        of = {"dtype": argument.dtype, "shape": list(argument.shape)}
        found[name] = of | ({"value": value} if value else {})
    return found


def recorded_parameters(made: Prepared, names: Sequence[str], l2_promotion: int) -> list[str | dict[str, Any]]:
    """Return the kernel's parameters as a record holds them.

    names         of the arguments
    l2_promotion  of all tensor maps, a number of CUtensorMapL2promotion
    """
    found: list[str | dict[str, Any]] = []
    for number, parameter in enumerate(made.launch.passed):
        if not isinstance(parameter, Packed):
            found.append(names[parameter])
            continue
        places = [
            {"at_byte": one.at_byte, "argument": one.array, "plus_bytes": one.plus_bytes} for one in parameter.addresses
        ]
        maps = [{"at_byte": at, "l2_promotion": l2_promotion} for of, at in made.maps if of == number]
        found.append({"bytes": parameter.content.hex(), "addresses": places} | ({"maps": maps} if maps else {}))
    return found


def _subject(case: Case, name: str, built: Built, sha256: str) -> dict[str, Any]:
    program = built.program
    compiler = "nvcc" if case.compiler == "host" else case.compiler
    return {
        "name": name,
        "rung": False,
        "tunables": {},
        "abi": "numba" if case.compiler == "numba" else "c",
        "symbol": program.symbol,
        "arch": ARCH,
        "cubin_sha256": sha256,
        "registers": program.registers,
        "static_shared_bytes": program.static_shared_bytes,
        "local_bytes": program.local_bytes,
        "toolchain": {**program.toolchain, compiler: compiler_version(compiler)},
    }
