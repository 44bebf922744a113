"""The coalesced kernel: the naive one with the roles of threadIdx.x and threadIdx.y exchanged."""

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
    def coalesced(A, B, C, alpha, beta):
        col, row = cuda.grid(2)  # threadIdx.x walks along a row of C: a warp's 32 addresses are neighbours
        if row < C.shape[0] and col < C.shape[1]:
            acc = float32(0)
            for k in range(A.shape[1]):
                acc += A[row, k] * B[k, col]
            acc *= alpha
            if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                acc += beta * C[row, col]
            C[row, col] = acc

    return coalesced


INFO = KernelInfo(
    name="coalesced",
    title="one thread an element of C, coalesced",
    teaches=(
        "The same arithmetic with rows and columns exchanged: a warp's load of A is one address that all 32 threads "
        "share, its load of B and its store of C are 128 neighbouring bytes."
    ),
    look_for="sectors per request: 1 for A, 4 for B; issue slots are now the limit, and most go to index arithmetic",
    launch=launch,
    build=build,
)
