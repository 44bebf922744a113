"""A rectangle of 8 x 4 elements a thread, and a K loop unrolled as far as asked."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div

TILE, DEPTH = 64, 16  # edge of the tile of C, depth of the shared tiles
TM, TN = 8, 4  # elements of C a thread
DOWN, ACROSS = TILE // TM, TILE // TN  # threads of a block
PASSES = DEPTH // DOWN  # in which they stage the tile of B


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, TILE), ceil_div(m, TILE), 1), block=(ACROSS, DOWN, 1))


def build(unroll: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, uint32

    from .unroll import unrolled

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def outer_product(k, tile_a, tile_b, y, x, acc):
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            a[i] = tile_a[y + i * DOWN, k]
        for j in range(TN):
            b[j] = tile_b[k, x + j * ACROSS]
        for i in range(TM):
            for j in range(TN):
                acc[i, j] += a[i] * b[j]

    some_products = unrolled(outer_product, unroll)

    @cuda.jit(fastmath=True)
    def rectangular(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((TILE, DEPTH), float32, 16)  # aligned to 16 bytes, so that four words are one read
        tile_b = cuda.shared.array((DEPTH, TILE), float32, 16)
        acc = cuda.local.array((TM, TN), float32)
        at_a = cuda.local.array(TM, uint32)
        at_b = cuda.local.array((PASSES, TN), uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        x, y = uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y)
        row, col = uint32(cuda.blockIdx.y * TILE + y), uint32(cuda.blockIdx.x * TILE + x)
        for i in range(TM):  # rows and columns outside the matrices repeat the last one
            at_a[i] = min(row + i * DOWN, m - 1) * depth + x
        for i in range(PASSES):
            for j in range(TN):
                at_b[i, j] = (y + i * DOWN) * n + min(col + j * ACROSS, n - 1)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)
        for k0 in range(0, A.shape[1], DEPTH):
            left = uint32(depth - k0)
            for i in range(TM):
                tile_a[y + i * DOWN, x] = A.flat[at_a[i]] if x < left else float32(0)
                at_a[i] += uint32(DEPTH)
            for i in range(PASSES):
                for j in range(TN):
                    k = uint32(y + i * DOWN)
                    tile_b[k, x + j * ACROSS] = B.flat[at_b[i, j]] if k < left else float32(0)
                    at_b[i, j] += uint32(DEPTH * n)
            cuda.syncthreads()
            for k1 in range(0, DEPTH, unroll):
                some_products(uint32(k1), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                r, c = uint32(row + i * DOWN), uint32(col + j * ACROSS)
                if r < m and c < n:
                    value = alpha * acc[i, j]
                    if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                        value += beta * C.flat[uint32(r * n + c)]
                    C.flat[uint32(r * n + c)] = value

    return rectangular


INFO = KernelInfo(
    name="rectangular",
    title="64 x 64 tile, 8 x 4 elements a thread, K unrolled",
    teaches=(
        "Twice the products of a 4 x 4 thread for half as many words again. Unrolling the K loop saves its counter and "
        "branch, lets reads of several k become one of 128 bits, and gives loads time to arrive; too far, and words "
        "that wait for their use take registers that other warps could have had."
    ),
    look_for="FFMA among the instructions of the K loop, registers and occupancy for unroll = 1 ... 16",
    launch=launch,
    build=build,
    tunables=(Tunable("unroll", (1, 2, 4, 8, 16), 8, "K steps a pass of the inner loop"),),
)
