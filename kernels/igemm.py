"""int8 matrices with dp4a: four products of bytes and their sum an instruction, in int32."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .word_tiles import bytes_along_k, stager

BM, BN, TM, TN = 64, 64, 4, 4  # tile of C a block, elements a thread
ACROSS, DOWN = BN // TN, BM // TM  # threads
THREADS = ACROSS * DOWN


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    from numba import cuda, int32, uint32

    from .intrinsics import dp4a_s8

    words = bk // 4
    padded_a, padded_b = words + 4, BN + 8
    load_a, load_b = bytes_along_k()
    stage = stager(load_a, load_b, BM, BN, words, THREADS)

    @cuda.jit
    def igemm(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BM, padded_a), uint32)
        tile_b = cuda.shared.array((words, padded_b), uint32)
        acc, b = cuda.local.array((TM, TN), int32), cuda.local.array(TN, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        row0, col0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        y, x = uint32(cuda.threadIdx.x // ACROSS), uint32(cuda.threadIdx.x % ACROSS)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = int32(0)
        for k0 in range(uint32(0), depth, bk):
            stage(A, B, row0, col0, uint32(uint32(k0) // 4), tile_a, tile_b)
            cuda.syncthreads()
            for w in range(words):
                for j in range(TN):
                    b[j] = tile_b[uint32(w), uint32(x + j * ACROSS)]
                for i in range(TM):
                    a = tile_a[uint32(y + i * DOWN), uint32(w)]
                    for j in range(TN):
                        acc[i, j] = dp4a_s8(a, b[j], acc[i, j])
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                row, col = uint32(row0 + y + i * DOWN), uint32(col0 + x + j * ACROSS)
                if row < m and col < n:
                    value = int32(alpha * acc[i, j])
                    if beta != 0:
                        value = int32(value + beta * C[row, col])
                    C[row, col] = value

    return igemm


INFO = KernelInfo(
    name="igemm",
    title="int8 with dp4a, int32 sums",
    teaches=(
        "IDP.4A adds four products of bytes to a sum: four times an FFMA's work an instruction, and exact. The bytes "
        "of a word are neighbours along K, which A's are and B's are not: B is packed, and so transposed, while it is "
        "staged."
    ),
    look_for="IDP.4A in the instruction mix, LDG.U8 and the packing before STS, bytes moved against a float32 kernel",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (16, 32, 64), 32, "depth of the shared tiles"),),
    dtypes=("i8",),
)
