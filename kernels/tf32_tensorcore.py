"""float32 matrices on tensor cores: rounded to TF32 on the way into shared memory."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .tensorcore_parts import tile_writer
from .word_tiles import products, stager

BM, BN = 128, 128  # tile of C a block
WM, WN = 64, 32  # a warp
THREADS = 32 * (BM // WM) * (BN // WN)


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    from numba import cuda, float32, uint32, uint64

    from .intrinsics import mma_m16n8k8_tf32, tf32_of

    @cuda.jit(device=True, forceinline=True)
    def load_a(A, row, k):
        return tf32_of(A[row, k]) if row < A.shape[0] and k < A.shape[1] else uint32(0)

    @cuda.jit(device=True, forceinline=True)
    def load_b(B, k, col):
        return tf32_of(B[k, col]) if k < B.shape[0] and col < B.shape[1] else uint32(0)

    words, tiles_m, tiles_n = bk // 1, WM // 16, WN // 8
    padded_a, padded_b = words + 4, BN + 8
    stage = stager(load_a, load_b, BM, BN, words, THREADS)
    multiply, write = products(mma_m16n8k8_tf32, tiles_m, tiles_n), tile_writer(tiles_m, tiles_n)

    @cuda.jit(fastmath=True)
    def tf32_tensorcore(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BM, padded_a), uint32)
        tile_b = cuda.shared.array((words, padded_b), uint32)
        acc = cuda.local.array((tiles_m, tiles_n, 4), float32)
        depth = uint32(A.shape[1])
        row0, col0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        warp, lane = uint32(cuda.threadIdx.x // 32), uint32(cuda.threadIdx.x % 32)
        g, t = uint32(lane // 4), uint32(lane % 4)
        y, x = uint32(warp // (BN // WN) * WM + g), uint32(warp % (BN // WN) * WN)
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] = float32(0)
        for k0 in range(uint32(0), depth, bk):
            stage(A, B, row0, col0, uint32(uint32(k0) // 1), tile_a, tile_b)
            cuda.syncthreads()
            for w in range(0, words, 8):
                multiply(tile_a, tile_b, y, uint32(x + g), uint32(w + t), acc)
            cuda.syncthreads()
        write(C, acc, uint32(row0 + y), uint32(col0 + x + 2 * t), alpha, beta, uint64(0))

    return tf32_tensorcore


INFO = KernelInfo(
    name="tf32_tensorcore",
    title="float32 in, TF32 products, float32 sums",
    teaches=(
        "Tensor cores take float32 only after its fraction is rounded from 23 bits to 10: each product is wrong by up "
        "to 2^-10 of itself, however the sum is kept. In return one HMMA does 1024 products of a warp, as many as 32 "
        "FFMA. The operands are rounded once, when they are staged."
    ),
    look_for="HMMA.1688 against FFMA of `warptiled`, the relative error of C, F2F between LDG and STS",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (8, 16, 32), 16, "depth of the shared tiles"),),
    operand_roundoff=2.0**-11,
)
