"""The tiled kernel with the tile of B stored transposed: a warp reads a column of it, and every lane hits one bank."""

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
    def tiled_transposed(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, tile), float32)  # tile_b[column, k]
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

    return tiled_transposed


INFO = KernelInfo(
    name="tiled_transposed",
    title="tiled, B's tile stored transposed: bank conflicts",
    teaches=(
        "Shared memory has 32 banks of four bytes. The rows of a tile 32 words wide begin in the same bank, so that 32 "
        "lanes which read one word each of 32 rows are served one after the other. All the counters of global memory "
        "are those of `tiled`."
    ),
    look_for="shared wavefronts per request: 32 where tile_b is stored and where it is read, 1 in `tiled`",
    launch=launch,
    build=build,
    tunables=(Tunable("tile", (16, 32), 32, "edge of a shared tile; a block has tile x tile threads"),),
)
