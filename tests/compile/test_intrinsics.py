"""Device intrinsics compile without a GPU for every architecture, to the instructions meant, and do what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cubins import SM_86
from numpy.typing import NDArray

pytest.importorskip("numba_cuda")

from gemmsim.compile import ArgType, PythonKernel, compile_kernel
from gemmsim.isa.program import Program
from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Launch

SOURCE = Path(__file__).parents[1] / "sources" / "intrinsic_kernels.py"
ARCHITECTURES = ("sm_80", SM_86, "sm_89", "sm_90", "sm_120")
DTYPES = {"float32": "f32", "float64": "f64", "int32": "i32"}


def run(kernel: str, arch: str, *values: NDArray | int) -> tuple[Program, list[NDArray]]:
    args = tuple(
        Argument(DTYPES[v.dtype.name], v.shape, v) if isinstance(v, np.ndarray) else Argument("i32", (), v)
        for v in values
    )
    signature = tuple(ArgType(a.dtype, len(a.shape)) for a in args)
    program = compile_kernel(PythonKernel(SOURCE, kernel, signature), arch, None)
    return program, [out for out in execute(program, Launch((1, 1, 1), (32, 1, 1), args)).outputs if out is not None]


def mnemonics(program: Program) -> set[str]:
    return {instruction.mnemonic for instruction in program.instructions}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_wide_accesses(arch: str) -> None:
    x = np.arange(128, dtype=np.float32).reshape(32, 4)
    program, (_, y) = run("wide", arch, x, np.zeros_like(x))
    np.testing.assert_array_equal(y, x[::-1])
    assert {"LDG.E.128", "STG.E.128", "LDS.128", "STS.128"} <= mnemonics(program)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_asynchronous_copies(arch: str) -> None:
    x = np.arange(1, 513, dtype=np.float32).reshape(32, 16)
    program, (_, y) = run("copies", arch, x, np.zeros_like(x))
    expected = x.copy()
    expected[16:, :4] = 0  # size 0
    expected[:, 11] = 0  # of eight bytes the first four
    expected[16:, 13] = 0
    expected[:, 14:] = 0
    np.testing.assert_array_equal(y, expected)
    assert {"LDGSTS.E.BYPASS.128", "LDGSTS.E.128", "LDGSTS.E", "LDGDEPBAR", "DEPBAR.LE"} <= mnemonics(program)


@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
def test_conditional_accesses_touch_nothing_else(arch: str) -> None:
    """x has 20 elements: an access by lane 20 or above would be out of bounds."""
    x = np.arange(1, 21, dtype=np.float32)
    _, (_, y) = run("conditional", arch, x, np.full(64, -1, np.float32), 20)
    np.testing.assert_array_equal(y[:32], np.concatenate([x, np.full(12, -1)]))
    np.testing.assert_array_equal(y[32:], np.arange(32) >= 20)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products(arch: str) -> None:
    """Ones: 8 of them in m16n8k8, 4 and C in m8n8k4, 32 in m16n8k32, 4 in dp4a."""
    ones = np.ones(32, np.float32)
    arrays = ones, np.zeros((32, 4), np.float32), np.ones(64), np.zeros(32, np.int32)
    program, (_, f, d, s) = run("products", arch, *arrays)
    assert (f == 8).all() and (d == 5).all() and (s == 32 + 4 + 32 + 1).all()
    assert {"HMMA.1688.F32.TF32", "IMMA.16832.S8.S8", "LDSM.16.M88", "LDSM.16.M88.2"} <= mnemonics(program)


def test_a_wait_takes_a_constant() -> None:
    from numba import cuda

    from gemmsim.compile.python_kernel import compile_numba
    from gemmsim.launch.ladder import kernel_infos
    from gemmsim.support.errors import GemmsimError

    kernel_infos()
    from gemmsim_kernels.intrinsics import cp_async_wait_group

    @cuda.jit
    def kernel(n):
        cp_async_wait_group(n)

    with pytest.raises(GemmsimError, match="numba cannot compile 'kernel'"):
        compile_numba(kernel, (ArgType("i32"),), "sm_90")
