"""16 x 16 threads on a wider tile: each thread computes every 16th row and column of it, 2 x 2 or 4 x 4 elements."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div

EDGE = 16  # of the block, and depth of the shared tiles


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    tile = tunables["tile"]
    return LaunchShape(grid=(ceil_div(n, tile), ceil_div(m, tile), 1), block=(EDGE, EDGE, 1))


def build(tile: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, uint32

    from .unroll import unrolled

    each = tile // EDGE  # rows, and columns, of C a thread

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def outer_product(k, tile_a, tile_b, y, x, acc):
        a = cuda.local.array(each, float32)
        b = cuda.local.array(each, float32)
        for i in range(each):
            a[i] = tile_a[y + i * EDGE, k]
            b[i] = tile_b[k, x + i * EDGE]
        for i in range(each):
            for j in range(each):
                acc[i, j] += a[i] * b[j]

    all_products = unrolled(outer_product, EDGE)

    @cuda.jit(fastmath=True)
    def register_blocked(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((tile, EDGE), float32, 16)  # aligned to 16 bytes, so that four words are one read
        tile_b = cuda.shared.array((EDGE, tile), float32, 16)
        acc = cuda.local.array((each, each), float32)
        at_a = cuda.local.array(each, uint32)
        at_b = cuda.local.array(each, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        x, y = uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y)
        row, col = uint32(cuda.blockIdx.y * tile + y), uint32(cuda.blockIdx.x * tile + x)
        for i in range(each):  # rows and columns outside the matrices repeat the last one
            at_a[i] = min(row + i * EDGE, m - 1) * depth + x
            at_b[i] = y * n + min(col + i * EDGE, n - 1)
            for j in range(each):
                acc[i, j] = float32(0)
        for k0 in range(0, A.shape[1], EDGE):
            left = uint32(depth - k0)
            for i in range(each):
                tile_a[y + i * EDGE, x] = A.flat[at_a[i]] if x < left else float32(0)
                tile_b[y, x + i * EDGE] = B.flat[at_b[i]] if y < left else float32(0)
                at_a[i] += uint32(EDGE)
                at_b[i] += uint32(EDGE * n)
            cuda.syncthreads()
            all_products(uint32(0), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        for i in range(each):
            for j in range(each):
                r, c = uint32(row + i * EDGE), uint32(col + j * EDGE)
                if r < m and c < n:
                    value = alpha * acc[i, j]
                    if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                        value += beta * C.flat[uint32(r * n + c)]
                    C.flat[uint32(r * n + c)] = value

    return register_blocked


INFO = KernelInfo(
    name="register_blocked",
    title="16 x 16 threads, each every 16th row and column of a tile",
    teaches=(
        "The threads of `tiled` on a tile two or four times as wide: reuse in registers grows with the tile's edge. As "
        "a thread's columns are 16 apart, neighbouring threads read neighbouring words, and no bank conflicts arise."
    ),
    look_for="shared wavefronts per FFMA for tile=32 and tile=64; no bank conflicts, unlike `blocktile_2d`",
    launch=launch,
    build=build,
    tunables=(Tunable("tile", (32, 64), 64, "edge of the tile of C; a thread computes tile/16 x tile/16 elements"),),
)
