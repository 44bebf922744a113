"""The rungs of other precisions: TF32, float64 and int8, each any size, on each architecture."""

from __future__ import annotations

import pytest
from cubins import SM_86
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_runs import run

pytest.importorskip("numba_cuda")

# rung -> (type of A and B, opcode of its products)
RUNGS = {
    "tf32_tensorcore": ("f32", "HMMA"),
    "dgemm": ("f64", "DFMA"),
    "dgemm_tensorcore": ("f64", "DMMA"),
    "igemm": ("i8", "IDP"),
    "igemm_tensorcore": ("i8", "IMMA"),
}
SIZES = st.one_of(st.integers(1, 12), st.sampled_from([16, 17, 31, 33, 63, 64, 65, 127, 128, 130]))


@pytest.mark.parametrize("name", RUNGS)
@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(st.tuples(SIZES, SIZES, SIZES), st.sampled_from([1, -2]), st.sampled_from([0, 1, 3]))
@example((1, 1, 1), 1, 0)
@example((127, 129, 65), 2, 3)
@example((33, 40, 1), 1, 1)
@example((1, 32, 24), 1, 0)
@example((128, 128, 64), 1, 0)
def test_any_size(name: str, sizes: tuple[int, int, int], alpha: int, beta: int) -> None:
    run(name, "sm_90", sizes, alpha, beta, RUNGS[name][0])


@pytest.mark.parametrize("arch", ["sm_80", SM_86, "sm_89", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", RUNGS)
def test_architectures(name: str, arch: str) -> None:
    """M N K products, by the rung's own instruction, and no sum in local memory."""
    dtype, opcode = RUNGS[name]
    run(name, arch, (67, 43, 21), 2, 3, dtype)
    done, _, program = run(name, arch, (128, 128, 64), 1, 0, dtype)
    assert program.local_bytes == 0
    executed = done.trace.weight @ done.trace.executed
    found = sum(executed[i.index] for i in program.instructions if i.opcode == opcode)
    assert found == 128 * 128 * 64 / products_of_a_warp(opcode)


def products_of_a_warp(opcode: str) -> int:
    """M x N x K of the matrix instruction; a DFMA is one product a lane, an IDP four."""
    shapes = {"HMMA": 16 * 8 * 8, "IMMA": 16 * 8 * 32, "DMMA": 8 * 8 * 4, "DFMA": 32, "IDP": 4 * 32}
    return shapes[opcode]
