"""Compiles the files of tests/sources: each file once an architecture and test session."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from gemmsim.compile import ArgType, CudaKernel, PythonKernel
from gemmsim.compile.cuda_kernel import compile_cuda, ptx_of_cuda
from gemmsim.compile.decode import decode_kernels
from gemmsim.compile.elf import read_cubin
from gemmsim.compile.kernel import build_kernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError

SOURCES = Path(__file__).parents[1] / "sources"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_120")


@cache
def _cubin(file: str, arch: str) -> bytes:
    path = SOURCES / file
    return compile_cuda(CudaKernel(path.read_text(), path), arch)[0]


@cache
def cuda_ptx(file: str, arch: str) -> str:
    path = SOURCES / file
    return ptx_of_cuda(CudaKernel(path.read_text(), path), arch) or ""


@cache
def _kernels(file: str, arch: str) -> dict[str, Program | GemmsimError]:
    """All kernels of a file by their symbols: nvdisasm takes half a second to start, however little it is given."""
    cubin = _cubin(file, arch)
    return dict(decode_kernels(cubin, [kernel.symbol for kernel in read_cubin(cubin).kernels]))


@cache
def cuda_program(file: str, name: str, arch: str) -> Program:
    """A kernel by its symbol, or by what the symbol of a template's instance contains: "blocktile_1dILi64ELi64E"."""
    symbols = _kernels(file, arch)
    exact = (
        [s for s in symbols if s == name]
        or [s for s in symbols if f"{len(name)}{name}" in s]
        or [s for s in symbols if name in s]
    )
    (symbol,) = exact
    found = symbols[symbol]
    if isinstance(found, GemmsimError):
        raise found
    return replace(found, name=name, toolchain=dict(sorted(tool_versions().items())))


@cache
def numba_program(function: str, dtypes: tuple[tuple[str, int], ...], arch: str) -> Program:
    signature = tuple(ArgType(dtype, ndim) for dtype, ndim in dtypes)
    return build_kernel(PythonKernel(SOURCES / "gemm_numba.py", function, signature), arch).program
