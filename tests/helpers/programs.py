"""Compiles the files of tests/sources: each file once an architecture and test session."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gemmsim.compile import ArgType, CudaKernel, PythonKernel
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.decode import decode_cubin
from gemmsim.compile.elf import read_cubin
from gemmsim.compile.kernel import build_kernel
from gemmsim.isa.program import Program

SOURCES = Path(__file__).parents[1] / "sources"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")


@cache
def _cubin(file: str, arch: str) -> bytes:
    path = SOURCES / file
    return compile_cuda(CudaKernel(path.read_text(), path), arch)[0]


@cache
def cuda_program(file: str, name: str, arch: str) -> Program:
    """A kernel by its symbol, or by what the symbol of a template's instance contains: "blocktile_1dILi64ELi64E"."""
    cubin = _cubin(file, arch)
    symbols = [kernel.symbol for kernel in read_cubin(cubin).kernels]
    exact = (
        [s for s in symbols if s == name]
        or [s for s in symbols if f"{len(name)}{name}" in s]
        or [s for s in symbols if name in s]
    )
    (symbol,) = exact
    return decode_cubin(cubin, symbol, arch, abi="c", name=name)


@cache
def numba_program(function: str, dtypes: tuple[tuple[str, int], ...], arch: str) -> Program:
    signature = tuple(ArgType(dtype, ndim) for dtype, ndim in dtypes)
    return build_kernel(PythonKernel(SOURCES / "gemm_numba.py", function, signature), arch).program
