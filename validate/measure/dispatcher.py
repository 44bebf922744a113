"""Launches a ladder kernel's @cuda.jit function through numba, to see if it runs the code that gemmsim simulates."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any

from gemmsim.compile.python_kernel import numba_type
from gemmsim.launch.arrays import NUMPY_DTYPES
from gemmsim.launch.ladder import kernel_info
from gemmsim.support.errors import GemmsimError

from .operands import Host, check

_HEADER_OFFSETS = struct.Struct("<40xQ10xHHH")  # e_shoff, e_shentsize, e_shnum, e_shstrndx of a 64-bit ELF file
_SECTION = struct.Struct("<IIQQQQ")  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size


def dispatcher_check(
    case: Mapping[str, Any], cubin: bytes, host: Host, arrays: Mapping[str, Any], gpu: Any
) -> dict[str, Any]:
    """Compare numba's own compilation of a case's kernel with the code that gemmsim simulates.

    The kernel is compiled and launched as a user of numba would do it. The returned outcome becomes the record's field
    `dispatcher`.

    A kernel that takes bf16 is compiled but not launched, as NumPy has no such type to tell numba of.

    cubin   the code that gemmsim simulates, with which numba's is compared
    arrays  device arrays by the names of the kernel's arguments
    """
    subject, problem, launch = case["subject"], case["problem"], case["launch"]
    build = kernel_info(subject["name"]).build
    assert build, "kernels in CUDA C++ are not launched through numba"
    kernel = build(**subject["tunables"])
    found: dict[str, Any] = {}
    if "bf16" in (problem["dtype"], problem["result_dtype"]):
        kernel.compile(_signature(launch, problem))
    else:
        arrays["C"].copy_to_device(host.arrays["C"])
        values = [arrays[name] if name in arrays else _scalar(name, problem) for name in launch["arguments"]]
        grid, block = tuple(launch["grid"]), tuple(launch["block"])
        kernel[grid, block, gpu.stream, launch.get("dynamic_shared_bytes", 0)](*values)
        gpu.synchronize()
        right = check(problem, host, arrays["C"].copy_to_host())
        if "relative_error" in right:
            found["relative_error"] = right["relative_error"]
        if right["status"] != "correct":
            found["detail"] = f"numba's own launch is {right['status']}: {right.get('why', '')}"
    compiled = next(iter(kernel.overloads.values()))._codelibrary.get_cubin()
    theirs = bytes(getattr(compiled, "code", compiled))
    found["cubin_sha256"] = hashlib.sha256(theirs).hexdigest()
    ours_code, their_code = machine_code(cubin), machine_code(theirs)
    found["same_code"] = ours_code == their_code
    if not found["same_code"]:
        words = sum(a != b for a, b in zip(_words(ours_code), _words(their_code), strict=False))
        detail = f"{len(ours_code) // 16} against {len(their_code) // 16} instructions, {words} differ in place"
        found["detail"] = "; ".join(text for text in (found.get("detail"), detail) if text)
    return found


def machine_code(cubin: bytes) -> bytes:
    """Return a cubin's instructions: its .text sections, in order. Raises GemmsimError where it is no 64-bit ELF."""
    if cubin[:5] != b"\x7fELF\x02":
        raise GemmsimError("this is no cubin: it does not begin as a 64-bit ELF file")
    offset, size, count, names_index = _HEADER_OFFSETS.unpack_from(cubin)
    sections = [_SECTION.unpack_from(cubin, offset + size * i) for i in range(count)]
    names = sections[names_index][4]
    code = b""
    for name, _, _, _, start, length in sections:
        end = cubin.index(b"\0", names + name)
        if cubin[names + name : end].startswith(b".text."):
            code += cubin[start : start + length]
    return code


def _words(code: bytes) -> list[bytes]:
    return [code[i : i + 16] for i in range(0, len(code), 16)]


def _scalar(name: str, problem: Mapping[str, Any]) -> Any:
    return NUMPY_DTYPES[problem["result_dtype"]].type(problem.get(name, 1 if name == "alpha" else 0))


def _signature(launch: Mapping[str, Any], problem: Mapping[str, Any]) -> Any:
    dtype, result = problem["dtype"], problem["result_dtype"]
    table = {"A": (dtype, 2), "B": (dtype, 2), "C": (result, 2), "bias": (result, 1)}
    table |= {name: (of["dtype"], len(of["shape"])) for name, of in launch.get("zeros", {}).items()}
    return tuple(numba_type(*table.get(name, (result, 0))) for name in launch["arguments"])
