"""Links PTX or LTO-IR to a cubin with nvJitLink, without a GPU or a driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmsim.compile.toolchain import missing
from gemmsim.support.errors import GemmsimError


def link(
    parts: Sequence[Any],
    arch: str,
    max_registers: int | None = None,
    *,
    lto: bool = False,
    made: str = "cubin",
    file: str = "",
) -> bytes:
    """Link `parts` to a cubin for `arch` ("sm_90"), with the options that numba's linker passes and line information.

    parts          each is PTX text or, with `lto`, LTO-IR as bytes, or cuda.core's ObjectCode, which numba-cuda returns
                   for what it compiles with NVRTC (the arithmetic of f16 and bf16), or a relocatable cubin as bytes
    max_registers  most registers of a thread; None: the linker decides
    lto            whether to optimise at link time
    made           "cubin", or "ptx" with `lto`
    file           where the parts come from, for messages

    Raises GemmsimError with the linker's first telling line where it refuses, or where the toolchain is missing.
    """
    try:
        from cuda.core import Linker, LinkerOptions, ObjectCode
    except ImportError:
        raise missing("nvJitLink (cuda.core)") from None
    options = LinkerOptions(
        arch=arch,
        lineinfo=True,
        max_register_count=max_registers,
        link_time_optimization=True if lto else None,
        ptx=True if made == "ptx" else None,
    )
    try:
        return bytes(Linker(*(_object(part, ObjectCode) for part in parts), options=options).link(made).code)
    except Exception as error:  # errors of cuda.core, of nvJitLink and plain ones
        what = "a cubin" if made == "cubin" else "PTX"
        of = f" of '{file}'" if file else ""
        raise GemmsimError(f"nvJitLink cannot make {what} for {arch}{of}: {_first_line(error)}") from None


def _object(part: Any, object_code: Any) -> Any:
    if isinstance(part, str):
        return object_code.from_ptx(part.encode())
    if isinstance(part, bytes) and part.startswith(b"\x7fELF"):
        return object_code.from_cubin(part)
    if isinstance(part, bytes):
        return object_code.from_ltoir(part)
    if isinstance(part, object_code):
        return part
    raise TypeError(f"gemmsim cannot link a {type(part).__name__}")


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if _tells(line)]
    return (telling or lines or [type(error).__name__])[0]


def _tells(line: str) -> bool:
    return "fatal" in line or ("error" in line.lower() and not line.startswith("ERROR_"))
