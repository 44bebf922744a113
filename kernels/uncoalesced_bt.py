"""The coalesced kernel on a transposed B: neighbouring threads read the same word of different rows of B."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, ceil_div

BLOCK = 32


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BLOCK), ceil_div(m, BLOCK), 1), block=(BLOCK, BLOCK, 1))


def build() -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32

    @cuda.jit(fastmath=True)
    def uncoalesced_bt(A, B, C, alpha, beta):
        col, row = cuda.grid(2)
        if row < C.shape[0] and col < C.shape[1]:
            acc = float32(0)
            for k in range(A.shape[1]):
                acc += A[row, k] * B[col, k]  # B is [n, k]: a warp's 32 addresses are 32 rows apart
            acc *= alpha
            if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                acc += beta * C[row, col]
            C[row, col] = acc

    return uncoalesced_bt


INFO = KernelInfo(
    name="uncoalesced_bt",
    title="one thread an element of C, B given transposed",
    teaches=(
        "Which thread should have which element depends on how the matrices lie. What made `coalesced` fast makes a "
        "warp read 32 rows of a transposed B; each thread walks along its own row, so that the 32 sectors of a request "
        "serve the next seven, as long as L1 keeps them."
    ),
    look_for="sectors per request of B: 32 against 4 in `coalesced`; wavefronts that fill the L1 data stage",
    launch=launch,
    build=build,
    b_transposed=True,
)
