"""warptiled with as many blocks as the GPU can hold, each of which computes one tile of C after another.

The tiles are taken in groups of some rows, so that the blocks under way at one time share rows of A and columns of B in
L2. Global memory is accessed 16 bytes at a time, word by word where rows do not start at multiples of 16 bytes. The
parts are in `warptile`.
"""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .warptile import BM, BN, LANES_ACROSS, STRIPS, THREADS, TM, TN, WM, WN, parts

BK = 16


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    return LaunchShape(grid=(min(tiles, tunables["blocks"]), 1, 1), block=(THREADS, 1, 1))


def build(blocks: int, group: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, int32, uint32

    aligned, place, fetch, stage, products, store = parts(BK)
    fours = BM * BK // 4 // THREADS

    @cuda.jit(fastmath=True)
    def persistent(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BK, BM), float32, 16)  # tile_a[k, row]
        tile_b = cuda.shared.array((BK, BN), float32, 16)
        acc = cuda.local.array((STRIPS, TM, TN), float32)
        words_a, words_b = cuda.local.array((fours, 4), float32), cuda.local.array((fours, 4), float32)
        at_a, at_b = cuda.local.array(fours, uint32), cuda.local.array(fours, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        fast = aligned(A, B, C)
        thread = uint32(cuda.threadIdx.x)
        warp, lane = uint32(thread // 32), uint32(thread % 32)
        y = uint32(uint32(warp // (BN // WN) * WM) + uint32(lane // LANES_ACROSS * TM))
        x = uint32(uint32(warp % (BN // WN) * WN) + uint32(lane % LANES_ACROSS * TN))
        down, across = uint32((m + (BM - 1)) // BM), uint32((n + (BN - 1)) // BN)
        for tile in range(cuda.blockIdx.x, down * across, cuda.gridDim.x):
            # Down the rows of a group of `group` rows of tiles, then to the next column; the last group may be smaller.
            first = uint32(uint32(tile) // uint32(group * across) * uint32(group))
            rows = uint32(min(down - first, uint32(group)))
            within = uint32(uint32(tile) - first * across)
            row_0, col_0 = uint32(uint32(first + within % rows) * BM), uint32(within // rows * uint32(BN))
            for s in range(STRIPS):
                for i in range(TM):
                    for j in range(TN):
                        acc[s, i, j] = float32(0)
            place(thread, row_0, col_0, uint32(0), m, n, depth, at_a, at_b)
            for k0 in range(0, A.shape[1], BK):
                fetch(A, B, thread, int32(n - col_0), int32(depth - k0), fast, at_a, at_b, words_a, words_b)
                stage(thread, uint32(0), words_a, words_b, tile_a, tile_b)
                cuda.syncthreads()
                products(uint32(0), tile_a, tile_b, y, x, acc)
                cuda.syncthreads()
            store(C, acc, uint32(row_0 + y), uint32(col_0 + x), fast, alpha, beta)

    return persistent


INFO = KernelInfo(
    name="persistent",
    title="warptiled, one wave of blocks loops over the tiles",
    teaches=(
        "With a grid of its own size a GPU runs its blocks in waves, and computes the tiles in the order of their "
        "numbers. A grid of one wave lets the kernel choose: in groups of rows, the tiles under way need fewer "
        "different rows of A and columns of B, which L2 then holds. What is left over at the end stays the same."
    ),
    look_for="L2 hit rate and DRAM sectors for group=1 against group=8; waves per SM (1)",
    launch=launch,
    build=build,
    tunables=(
        Tunable("blocks", (2, 108, 132, 264), 264, "blocks at most: two an SM of an H200 by default"),
        Tunable("group", (1, 2, 4, 8, 16), 8, "rows of tiles in a group"),
    ),
)
