"""The transposed tile cured by a padding column: rows of tile + 1 words begin in different banks."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    tile = tunables["tile"]
    return LaunchShape(grid=(ceil_div(n, tile), ceil_div(m, tile), 1), block=(tile, tile, 1))


def build(tile: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32

    pitch = tile + 1

    @cuda.jit(fastmath=True)
    def tiled_padded(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, pitch), float32)  # tile_b[column, k]; nothing uses the last k
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = cuda.blockIdx.y * tile + ty
        col = cuda.blockIdx.x * tile + tx
        m, n = C.shape
        depth = A.shape[1]
        acc = float32(0)
        for k0 in range(0, depth, tile):
            tile_a[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < depth else float32(0)
            tile_b[tx, ty] = B[k0 + ty, col] if k0 + ty < depth and col < n else float32(0)
            cuda.syncthreads()
            for k in range(tile):
                acc += tile_a[ty, k] * tile_b[tx, k]
            cuda.syncthreads()
        if row < m and col < n:
            acc *= alpha
            if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                acc += beta * C[row, col]
            C[row, col] = acc

    return tiled_padded


INFO = KernelInfo(
    name="tiled_padded",
    title="tiled, transposed, with a padding column: no conflicts",
    teaches=(
        "One unused word a row moves each row of the transposed tile one bank on, so that a column lies in 32 "
        "different banks. It costs shared memory, and rows that begin at odd words cannot be read 16 bytes at a time."
    ),
    look_for="shared wavefronts per request: 1 everywhere but for the broadcasts of tile_a, static shared memory up",
    launch=launch,
    build=build,
    tunables=(Tunable("tile", (16, 32), 32, "edge of a shared tile; a block has tile x tile threads"),),
)
