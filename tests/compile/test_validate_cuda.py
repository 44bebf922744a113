"""The CUDA C++ kernels that stand for published ones compute C = alpha A B + beta C, by gemmsim's own execution."""

from __future__ import annotations

import numpy as np
import pytest
from gemmsim_validate.records.case import load_cases
from gemmsim_validate.records.files import CUDA_FOLDER, FOLDER

from gemmsim.compile import compile_kernel, default_cache
from gemmsim.compile.source import CudaKernel
from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Launch

U = 2.0**-24
# entry -> (file, size, grid, block); sizes are the smallest with more than one block each way where that is cheap
KERNELS = {
    "rows_along_x": ("naive.cu", 70, (3, 3, 1), (32, 32, 1)),
    "columns_along_x": ("naive.cu", 70, (5, 5, 1), (16, 16, 1)),
    "columns_along_x_bt": ("naive.cu", 70, (5, 5, 1), (16, 16, 1)),
    "coalesced<32>": ("coalesced.cu", 70, (3, 3, 1), (1024, 1, 1)),
    "plain<32,true>": ("tiled.cu", 64, (2, 2, 1), (1024, 1, 1)),
    "plain<32,false>": ("tiled.cu", 64, (2, 2, 1), (32, 32, 1)),
    "plain<16,false>": ("tiled.cu", 64, (4, 4, 1), (16, 16, 1)),
    "guarded<16>": ("tiled.cu", 70, (5, 5, 1), (16, 16, 1)),
    "register_tiled<64,4>": ("register_tiled.cu", 100, (2, 2, 1), (16, 16, 1)),
    "blocktile_1d<64,64,8,8>": ("blocktile_1d.cu", 128, (2, 2, 1), (512, 1, 1)),
    "blocktile_2d<128,128,8,8,8>": ("blocktile_2d.cu", 128, (1, 1, 1), (256, 1, 1)),
    "blocktile_2d<64,64,8,8,8>": ("blocktile_2d.cu", 128, (2, 2, 1), (64, 1, 1)),
    "blocktile_2d_flat<64,64,8,8,8>": ("blocktile_2d.cu", 128, (2, 2, 1), (64, 1, 1)),
    "transposed<128,128,8,8,8>": ("vectorized.cu", 128, (1, 1, 1), (256, 1, 1)),
    "transposed<128,128,16,8,8>": ("vectorized.cu", 128, (1, 1, 1), (256, 1, 1)),
    "transposed<64,64,16,4,4>": ("vectorized.cu", 128, (2, 2, 1), (256, 1, 1)),
    "rows<128,128,32,8,8>": ("vectorized.cu", 128, (1, 1, 1), (256, 1, 1)),
    "warptiled<128,128,16,64,64,4,8,4,128>": ("warptiled.cu", 128, (1, 1, 1), (128, 1, 1)),
    "warptiled<64,128,16,32,64,1,4,4,128>": ("warptiled.cu", 128, (1, 2, 1), (128, 1, 1)),
}


def arches() -> dict[str, str]:
    """For each entry that a record names, the architecture of the first that does; sm_80 for the others."""
    found = dict.fromkeys(KERNELS, "sm_80")
    for case in reversed(load_cases(FOLDER / "published")):
        found[case.data["subject"]["cuda"]["entry"]] = case.data["subject"]["arch"]
    return found


def test_every_entry_of_the_records_is_tested() -> None:
    assert set(arches()) == set(KERNELS)


@pytest.mark.parametrize("entry", KERNELS)
def test_computes_a_gemm(entry: str) -> None:
    """Against float64, within the bound of any order of K + 3 terms (Higham, section 3.1)."""
    file, n, grid, block = KERNELS[entry]
    path = CUDA_FOLDER / file
    program = compile_kernel(CudaKernel(path.read_text(), path, entry), arches()[entry], default_cache())
    random = np.random.default_rng(7)
    a, b, c = (random.random((n, n), np.float32) - np.float32(0.5) for _ in range(3))
    given_b = np.ascontiguousarray(b.T) if entry.endswith("_bt") else b
    integers = [Argument("i32", (), n)] * 3
    alpha, beta = Argument("f32", (), 0.5), Argument("f32", (), 3.0)
    matrices = [Argument("f32", (n, n), x) for x in (a, given_b, c)]
    result = execute(program, Launch(grid, block, (*integers, alpha, *matrices[:2], beta, matrices[2]))).outputs[7]
    exact = 0.5 * (a.astype(float) @ b) + 3.0 * c.astype(float)
    allowed = (n + 3) * U * (0.5 * (np.abs(a).astype(float) @ np.abs(b)) + 3.0 * np.abs(c))
    assert result is not None
    assert (np.abs(result - exact) <= allowed).all()
