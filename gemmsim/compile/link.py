"""PTX or LTO-IR -> cubin with nvJitLink, without a GPU or a driver."""

from __future__ import annotations

from gemmsim.compile.toolchain import missing
from gemmsim.errors import GemmsimError


def link_ptx(ptx: str, arch: str) -> bytes:
    """PTX text to a cubin for "sm_90". Raises GemmsimError with the linker's first line where it refuses."""
    return _link(ptx.encode(), arch, None, lto=False)


def link(code: bytes, arch: str, max_registers: int | None, *, lto: bool) -> bytes:
    """Code from numba, PTX or (lto) LTO-IR, to a cubin, with the options that numba's own linker passes."""
    return _link(code, arch, max_registers, lto=lto)


def _link(code: bytes, arch: str, max_registers: int | None, *, lto: bool) -> bytes:
    try:
        from cuda.core import Linker, LinkerOptions, ObjectCode
    except ImportError:
        raise missing("nvJitLink (cuda.core)") from None
    options = LinkerOptions(
        arch=arch, lineinfo=True, max_register_count=max_registers, link_time_optimization=True if lto else None
    )
    try:
        part = ObjectCode.from_ltoir(code) if lto else ObjectCode.from_ptx(code)
        return bytes(Linker(part, options=options).link("cubin").code)
    except Exception as error:  # cuda.core raises its own, nvJitLink's and plain errors alike
        raise GemmsimError(f"nvJitLink cannot make a cubin for {arch}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() and not line.startswith("ERROR_")]
    return (telling or lines or [type(error).__name__])[0]
