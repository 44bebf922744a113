"""A tile a block, a tile a warp, a tile a thread: each warp's words of the shared tiles are few and close together.

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

    @cuda.jit(fastmath=True)
    def warptiled(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((bk, BM), float32, 16)  # tile_a[k, row]
        tile_b = cuda.shared.array((bk, BN), float32, 16)
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
        for k0 in range(0, A.shape[1], bk):
            fetch(A, B, thread, int32(n - col_0), int32(depth - k0), fast, at_a, at_b, words_a, words_b)
            stage(thread, uint32(0), words_a, words_b, tile_a, tile_b)
            cuda.syncthreads()
            products(uint32(0), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        store(C, acc, uint32(row_0 + y), uint32(col_0 + x), fast, alpha, beta)

    return warptiled


INFO = KernelInfo(
    name="warptiled",
    title="tiles of a block, of a warp and of a thread",
    teaches=(
        "A warp with a 64 x 64 tile of its own reads 128 words of shared memory for 4096 products; spread over the "
        "block's tile, as in `vectorized`, it would need more. Four neighbouring words a lane in each of four strips "
        "avoid bank conflicts. 128 sums a thread leave room for few warps: independent products must hide latency."
    ),
    look_for="shared wavefronts per FFMA, conflicts of tile_b (none); registers, and occupancy that no longer matters",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (8, 16), 16, "depth of the shared tiles"),),
)
