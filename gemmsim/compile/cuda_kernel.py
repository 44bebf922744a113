"""Compiles CUDA C++ to a cubin with NVRTC, without a GPU or a driver."""

from __future__ import annotations

import re
from typing import Any

from gemmsim.compile.source import CudaKernel
from gemmsim.compile.toolchain import header_folders, missing
from gemmsim.support.errors import GemmsimError


def compile_cuda(source: CudaKernel, arch: str) -> tuple[bytes, str | None]:
    """Compile `source` for `arch`; returns the cubin, and the symbol of the source's entry (None where it names none).

    An entry that is a template with its arguments (`sgemm<128,128,8>`) is instantiated. Raises GemmsimError with the
    first line of NVRTC's log that tells of an error, or for a missing toolchain.
    """
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise missing("NVRTC (cuda.bindings)") from None
    options = [*source.options, "--generate-line-info", f"--include-path={source.path.parent}"]
    options += [f"--include-path={folder}" for folder in header_folders()]
    if not any(option.startswith(("-arch", "--gpu-architecture")) for option in source.options):
        options.append(f"--gpu-architecture={arch}")
    try:
        program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(source.text.encode(), str(source.path).encode(), 0, [], []))
    except RuntimeError:  # cuda.bindings found no library to load
        raise missing("NVRTC") from None
    try:
        if source.entry is not None:
            _checked(nvrtc, nvrtc.nvrtcAddNameExpression(program, source.entry.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise GemmsimError(f"NVRTC cannot compile '{source.path.name}' for {arch}: {_first_error(nvrtc, program)}")
        symbol = None
        if source.entry is not None:
            symbol = _checked(nvrtc, nvrtc.nvrtcGetLoweredName(program, source.entry.encode())).decode()
        cubin = b" " * _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program))
        if not cubin:
            raise GemmsimError(f"NVRTC made no cubin of '{source.path.name}': -arch needs a real architecture, sm_90")
        _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, cubin))
        return cubin, symbol
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise GemmsimError(f"NVRTC failed: {status.name}")
    return values[0] if values else None


def _first_error(nvrtc: Any, program: Any) -> str:
    log = b" " * _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
    _checked(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    lines = [line.strip() for line in log.rstrip(b"\0").decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\berror\b", line)]
    return (telling or lines or ["no message"])[0]
