"""A warp keeps its rows of A in registers and passes their words from lane to lane: no shared memory."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div

LANES = 32
WARPS = 8


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, LANES), ceil_div(m, WARPS * tunables["rows"]), 1), block=(LANES, WARPS, 1))


def build(rows: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, uint32

    lanes, all_lanes = LANES, 0xFFFFFFFF

    @cuda.jit(fastmath=True)
    def warp_shuffle(A, B, C, alpha, beta):
        a = cuda.local.array(rows, float32)
        acc = cuda.local.array(rows, float32)
        at_a = cuda.local.array(rows, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        lane = uint32(cuda.threadIdx.x)
        row = uint32((cuda.blockIdx.y * WARPS + cuda.threadIdx.y) * rows)
        col = uint32(cuda.blockIdx.x * lanes + lane)
        # All lanes must reach a shuffle: rows and columns outside the matrices repeat the last, and are not stored.
        at_b = uint32(min(col, n - 1))
        for i in range(rows):
            at_a[i] = min(row + i, m - 1) * depth + lane
            acc[i] = float32(0)
        for k0 in range(0, A.shape[1], lanes):
            left = uint32(depth - k0)
            for i in range(rows):
                a[i] = A.flat[at_a[i]] if lane < left else float32(0)
                at_a[i] += uint32(lanes)
            for k1 in range(0, lanes, 8):  # in two loops, as numba unrolls the inner one only
                for k2 in range(8):
                    b = B.flat[at_b] if uint32(k1 + k2) < left else float32(0)
                    at_b = uint32(at_b + n)
                    for i in range(rows):
                        acc[i] += cuda.shfl_sync(all_lanes, a[i], k1 + k2) * b
        for i in range(rows):
            if uint32(row + i) < m and col < n:
                value = alpha * acc[i]
                if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                    value += beta * C[row + i, col]
                C[row + i, col] = value

    return warp_shuffle


INFO = KernelInfo(
    name="warp_shuffle",
    title="rows of A exchanged between lanes by shuffles",
    teaches=(
        "A warp reads 32 words of a row of A at once, one a lane, and each lane then hands its word to all others with "
        "shfl_sync. No shared memory and no barrier, but a shuffle takes the same path as a shared load of 32 words: "
        "only more rows a warp, so that a word of B serves several products, relieve it."
    ),
    look_for="no shared memory and no barrier stalls; SHFL as frequent as FFMA, the LSU pipe busy",
    launch=launch,
    build=build,
    tunables=(Tunable("rows", (1, 2, 4, 8), 4, "rows of C that a warp computes"),),
)
