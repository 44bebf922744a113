"""warptiled with two pairs of shared tiles: the next pair is on its way while the products of the other are computed.

Global memory is accessed 16 bytes at a time, word by word where rows do not start at multiples of 16 bytes. The parts
are in `warptile`.
"""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .warptile import BM, BN, LANES_ACROSS, STRIPS, THREADS, TM, TN, WM, WN, parts


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, int32, uint32

    aligned, place, fetch, stage, products, store = parts(bk)
    fours = BM * bk // 4 // THREADS
    both = 2 * bk

    @cuda.jit(fastmath=True)
    def double_buffered(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((both, BM), float32, 16)  # two tiles, one at depth 0, one at depth bk
        tile_b = cuda.shared.array((both, BN), float32, 16)
        acc = cuda.local.array((STRIPS, TM, TN), float32)
        words_a, words_b = cuda.local.array((fours, 4), float32), cuda.local.array((fours, 4), float32)
        at_a, at_b = cuda.local.array(fours, uint32), cuda.local.array(fours, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        fast = aligned(A, B, C)
        thread = uint32(cuda.threadIdx.x)
        warp, lane = uint32(thread // 32), uint32(thread % 32)
        row_0, col_0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        y = uint32(uint32(warp // (BN // WN) * WM) + uint32(lane // LANES_ACROSS * TM))
        x = uint32(uint32(warp % (BN // WN) * WN) + uint32(lane % LANES_ACROSS * TN))
        for s in range(STRIPS):
            for i in range(TM):
                for j in range(TN):
                    acc[s, i, j] = float32(0)
        place(thread, row_0, col_0, uint32(0), m, n, depth, at_a, at_b)
        fetch(A, B, thread, int32(n - col_0), int32(depth), fast, at_a, at_b, words_a, words_b)
        stage(thread, uint32(0), words_a, words_b, tile_a, tile_b)
        cuda.syncthreads()
        now = uint32(0)  # depth of the tiles to be multiplied
        for k0 in range(bk, A.shape[1] + bk, bk):
            # Past the end of K this reads nothing: words of k >= depth are zero without an access.
            fetch(A, B, thread, int32(n - col_0), int32(depth - k0), fast, at_a, at_b, words_a, words_b)
            products(now, tile_a, tile_b, y, x, acc)
            now = uint32(bk - now)
            stage(thread, now, words_a, words_b, tile_a, tile_b)
            cuda.syncthreads()
        store(C, acc, uint32(row_0 + y), uint32(col_0 + x), fast, alpha, beta)

    return double_buffered


INFO = KernelInfo(
    name="double_buffered",
    title="warptiled with two pairs of shared tiles",
    teaches=(
        "Loads from global memory take hundreds of cycles. Here they are issued before the products of the tiles at "
        "hand, and their words stored to the other pair of tiles after them; with two pairs one barrier a tile is "
        "enough. The words on their way need registers of their own, and the tiles twice the shared memory."
    ),
    look_for="long scoreboard and barrier stalls against `warptiled`; BAR a tile: 1 for 2; registers and shared memory",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (8, 16), 8, "depth of the shared tiles"),),
)
