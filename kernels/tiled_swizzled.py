"""The transposed tile cured by a swizzle: word k of row r is stored at k XOR r, and no memory is given away."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    tile = tunables["tile"]
    return LaunchShape(grid=(ceil_div(n, tile), ceil_div(m, tile), 1), block=(tile, tile, 1))


def build(tile: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, uint32

    @cuda.jit(fastmath=True)
    def tiled_swizzled(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, tile), float32)  # word k of column c at tile_b[c, k ^ c]
        tx = uint32(cuda.threadIdx.x)  # unsigned: numba would test each XOR for a negative index
        ty = uint32(cuda.threadIdx.y)
        row = cuda.blockIdx.y * tile + ty
        col = cuda.blockIdx.x * tile + tx
        m, n = C.shape
        depth = A.shape[1]
        acc = float32(0)
        for k0 in range(0, depth, tile):
            tile_a[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < depth else float32(0)
            tile_b[tx, ty ^ tx] = B[k0 + ty, col] if k0 + ty < depth and col < n else float32(0)
            cuda.syncthreads()
            for k in range(tile):
                acc += tile_a[ty, k] * tile_b[tx, uint32(k) ^ tx]
            cuda.syncthreads()
        if row < m and col < n:
            acc *= alpha
            if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                acc += beta * C[row, col]
            C[row, col] = acc

    return tiled_swizzled


INFO = KernelInfo(
    name="tiled_swizzled",
    title="tiled, transposed, with an XOR swizzle: no conflicts",
    teaches=(
        "XOR with the row number permutes the words within each row of the transposed tile, each row differently: a "
        "column again lies in 32 different banks, without padding. Each of the 32 reads has "
        "an address of its own, which costs a register."
    ),
    look_for="no bank conflicts with the shared memory of `tiled_transposed`; registers, against `tiled_padded`",
    launch=launch,
    build=build,
    tunables=(Tunable("tile", (16, 32), 32, "edge of a shared tile; a block has tile x tile threads"),),
)
