"""The tiled kernel: a block stages square tiles of A and B in shared memory, so each element is fetched once a tile."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    tile = tunables["tile"]
    return LaunchShape(grid=(ceil_div(n, tile), ceil_div(m, tile), 1), block=(tile, tile, 1))


def build(tile: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32

    @cuda.jit(fastmath=True)
    def tiled(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, tile), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = cuda.blockIdx.y * tile + ty
        col = cuda.blockIdx.x * tile + tx
        m, n = C.shape
        depth = A.shape[1]
        acc = float32(0)
        for k0 in range(0, depth, tile):
            tile_a[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < depth else float32(0)
            tile_b[ty, tx] = B[k0 + ty, col] if k0 + ty < depth and col < n else float32(0)
            cuda.syncthreads()
            for k in range(tile):
                acc += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        if row < m and col < n:
            acc *= alpha
            if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                acc += beta * C[row, col]
            C[row, col] = acc

    return tiled


INFO = KernelInfo(
    name="tiled",
    title="square tiles of A and B staged in shared memory",
    teaches=(
        "Each element of A and B is fetched from global memory once a tile instead of once a product; the products "
        "read shared memory instead, so that its wavefronts become the new ceiling."
    ),
    look_for="global load requests (two a warp and tile), row of A read by LDS.128, shared wavefronts against FFMA",
    launch=launch,
    build=build,
    tunables=(Tunable("tile", (8, 16, 32), 32, "edge of a shared tile; a block has tile x tile threads"),),
)
