"""The naive kernel: one thread an element of C, and neighbouring threads on different rows."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, ceil_div

BLOCK = 32


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(m, BLOCK), ceil_div(n, BLOCK), 1), block=(BLOCK, BLOCK, 1))


def build() -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32

    @cuda.jit(fastmath=True)
    def naive(A, B, C, alpha, beta):
        row, col = cuda.grid(2)  # threadIdx.x walks down a column of C: a warp's 32 addresses are 32 rows apart
        if row < C.shape[0] and col < C.shape[1]:
            acc = float32(0)
            for k in range(A.shape[1]):
                acc += A[row, k] * B[k, col]
            acc *= alpha
            if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                acc += beta * C[row, col]
            C[row, col] = acc

    return naive


INFO = KernelInfo(
    name="naive",
    title="one thread an element of C, uncoalesced",
    teaches=(
        "Consecutive threads of a warp compute consecutive rows of C, so each load of A and each store of C touches 32 "
        "rows: 32 sectors where 4 would hold the same bytes."
    ),
    look_for="sectors per request of the line that reads A (32), and wavefronts that fill the L1 data stage",
    launch=launch,
    build=build,
)
