"""int8 matrices on tensor cores, int32 sums: mma.sync m16n8k32."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .word_tiles import bytes_along_k, products, stager

BM, BN = 128, 128  # tile of C a block
WM, WN = 64, 32  # a warp
THREADS = 32 * (BM // WM) * (BN // WN)


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    from numba import cuda, int32, uint32, uint64

    from .intrinsics import global_address, load_global_s32_if, mma_m16n8k32_s8, store_global_s32_if

    load_a, load_b = bytes_along_k()

    words, tiles_m, tiles_n = bk // 4, WM // 16, WN // 8
    padded_a, padded_b = words + 4, BN + 8
    stage = stager(load_a, load_b, BM, BN, words, THREADS)
    multiply = products(mma_m16n8k32_s8, tiles_m, tiles_n)

    @cuda.jit(fastmath=True)
    def igemm_tensorcore(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BM, padded_a), uint32)
        tile_b = cuda.shared.array((words, padded_b), uint32)
        acc = cuda.local.array((tiles_m, tiles_n, 4), int32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        row0, col0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        warp, lane = uint32(cuda.threadIdx.x // 32), uint32(cuda.threadIdx.x % 32)
        g, t = uint32(lane // 4), uint32(lane % 4)
        y, x = uint32(warp // (BN // WN) * WM + g), uint32(warp % (BN // WN) * WN)
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] = int32(0)
        for k0 in range(uint32(0), depth, bk):
            stage(A, B, row0, col0, uint32(uint32(k0) // 4), tile_a, tile_b)
            cuda.syncthreads()
            for w in range(0, words, 8):
                multiply(tile_a, tile_b, y, uint32(x + g), uint32(w + t), acc)
            cuda.syncthreads()
        # Loops without branches: the compiler unrolls no others, and the sums would move to local memory
        rows, cols = int32(m - (row0 + y)), int32(n - (col0 + x + 2 * t))  # that are left
        to = global_address(C) + (uint64(row0 + y) * uint64(n) + uint64(col0 + x + 2 * t)) * uint64(4)
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] *= alpha
        if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
            for i in range(tiles_m):
                for j in range(tiles_n):
                    for r in range(4):
                        down, right = 16 * i + r // 2 * 8, 8 * j + r % 2
                        at = to + uint64(down) * uint64(n) * uint64(4) + uint64(4 * right)
                        acc[i, j, r] += beta * load_global_s32_if(at, uint32(down < rows and right < cols))
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    down, right = 16 * i + r // 2 * 8, 8 * j + r % 2
                    at = to + uint64(down) * uint64(n) * uint64(4) + uint64(4 * right)
                    store_global_s32_if(at, acc[i, j, r], uint32(down < rows and right < cols))

    return igemm_tensorcore


INFO = KernelInfo(
    name="igemm_tensorcore",
    title="int8 on tensor cores, int32 sums",
    teaches=(
        "One IMMA multiplies 16 x 32 by 32 x 8 bytes, 4096 products of a warp, and every sum is exact. Its fragments "
        "are words of four bytes along K, so B, which lies row by row, is packed on its way into shared memory; four "
        "byte loads and their packing for each such word soon cost more than the products."
    ),
    look_for="IMMA against LDG.U8 and PRMT in the instruction mix, sectors per request of the byte loads",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (32, 64, 128), 64, "depth of the shared tiles"),),
    dtypes=("i8",),
)
