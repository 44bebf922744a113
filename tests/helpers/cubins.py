"""Small kernels, compiled once a test session, for the tests of compile/ and isa/."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from gemmsim.compile import ArgType, CudaKernel, PythonKernel
from gemmsim.compile.kernel import Built, build_kernel

SOURCES = Path(__file__).parents[1] / "sources"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_120")
SM_86 = pytest.param("sm_86", marks=pytest.mark.slow)  # its code is that of sm_89: tests/compile/test_ship.py
EACH = tuple(SM_86 if arch == "sm_86" else arch for arch in ARCHITECTURES)  # for pytest.mark.parametrize
ZOO = SOURCES / "zoo.cu"


@cache
def zoo(arch: str) -> Built:
    return build_kernel(CudaKernel(ZOO.read_text(), ZOO, "zoo"), arch)


@cache
def cuda(text: str, arch: str = "sm_90", entry: str | None = None) -> Built:
    return build_kernel(CudaKernel(text, SOURCES / "inline.cu", entry), arch)


def python_kernel(function: str, *dtypes: str, tunables: tuple[tuple[str, int], ...] | None = None) -> PythonKernel:
    signature = tuple(ArgType(dtype.removesuffix("[]"), 1 if dtype.endswith("[]") else 0) for dtype in dtypes)
    return PythonKernel(SOURCES / "python_kernels.py", function, signature, tunables)
