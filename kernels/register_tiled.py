"""Each thread computes 2 x 2 elements of C straight from global memory: reuse in registers alone."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, ceil_div

ACROSS, DOWN = 32, 8  # threads of a block


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, 2 * ACROSS), ceil_div(m, 2 * DOWN), 1), block=(ACROSS, DOWN, 1))


def build() -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, uint32

    @cuda.jit(fastmath=True)
    def register_tiled(A, B, C, alpha, beta):
        acc = cuda.local.array((2, 2), float32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        row = uint32(cuda.blockIdx.y * (2 * DOWN) + cuda.threadIdx.y)
        col = uint32(cuda.blockIdx.x * (2 * ACROSS) + cuda.threadIdx.x)
        # Rows and columns outside the matrices repeat the last one, so that the loop needs no test; none is stored.
        at_a_0, at_a_1 = uint32(min(row, m - 1) * depth), uint32(min(row + DOWN, m - 1) * depth)
        at_b_0, at_b_1 = uint32(min(col, n - 1)), uint32(min(col + ACROSS, n - 1))
        for i in range(2):
            for j in range(2):
                acc[i, j] = float32(0)
        for k in range(A.shape[1]):
            a_0, a_1 = A.flat[at_a_0 + k], A.flat[at_a_1 + k]
            b_0, b_1 = B.flat[at_b_0 + k * n], B.flat[at_b_1 + k * n]
            acc[0, 0] += a_0 * b_0
            acc[0, 1] += a_0 * b_1
            acc[1, 0] += a_1 * b_0
            acc[1, 1] += a_1 * b_1
        for i in range(2):
            for j in range(2):
                r, c = uint32(row + i * DOWN), uint32(col + j * ACROSS)
                if r < m and c < n:
                    value = alpha * acc[i, j]
                    if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                        value += beta * C[r, c]
                    C[r, c] = value

    return register_tiled


INFO = KernelInfo(
    name="register_tiled",
    title="2 x 2 elements of C a thread, no shared memory",
    teaches=(
        "A word in a register serves every product of its row or column of the thread's own tile: four loads for four "
        "products, where `coalesced` needs eight. The neighbours' words lie side by side, so that the loads stay "
        "coalesced: a thread's columns are 32 apart, not next to each other."
    ),
    look_for="global load requests: half of those of `coalesced`; registers a thread up",
    launch=launch,
    build=build,
)
