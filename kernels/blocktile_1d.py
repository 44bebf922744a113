"""A thread computes a column of 8 elements of C: a word of B read from shared memory serves 8 products."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, ceil_div

BM, BN, BK, TM = 64, 64, 8, 8  # tile of C, depth of the shared tiles, elements of C a thread
THREADS = BM * BN // TM


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build() -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, uint32

    from .unroll import unrolled

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def column_product(k, tile_a, tile_b, y, x, acc):
        b = tile_b[k, x]
        for i in range(TM):
            acc[i] += tile_a[y + i, k] * b

    all_products = unrolled(column_product, BK)

    @cuda.jit(fastmath=True)
    def blocktile_1d(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BM, BK), float32, 16)  # aligned to 16 bytes, so that four words are one read
        tile_b = cuda.shared.array((BK, BN), float32)
        acc = cuda.local.array(TM, float32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        thread = uint32(cuda.threadIdx.x)
        row_0, col_0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        # The words that this thread stages; rows and columns outside the matrices repeat the last one.
        row_a, k_a = uint32(thread // BK), uint32(thread % BK)
        k_b, col_b = uint32(thread // BN), uint32(thread % BN)
        at_a = uint32(min(row_0 + row_a, uint32(m - 1)) * depth + k_a)
        at_b = uint32(k_b * n + min(col_0 + col_b, uint32(n - 1)))
        # The column of C that it computes; all lanes of a warp have the same rows.
        y, x = uint32(thread // BN * TM), uint32(thread % BN)
        for i in range(TM):
            acc[i] = float32(0)
        for k0 in range(0, A.shape[1], BK):
            left = uint32(depth - k0)
            tile_a[row_a, k_a] = A.flat[at_a] if k_a < left else float32(0)
            tile_b[k_b, col_b] = B.flat[at_b] if k_b < left else float32(0)
            at_a = uint32(at_a + BK)
            at_b = uint32(at_b + BK * n)
            cuda.syncthreads()
            all_products(uint32(0), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        row, col = uint32(row_0 + y), uint32(col_0 + x)
        for i in range(TM):
            if uint32(row + i) < m and col < n:
                at_c = uint32((row + i) * n + col)
                value = alpha * acc[i]
                if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                    value += beta * C.flat[at_c]
                C.flat[at_c] = value

    return blocktile_1d


INFO = KernelInfo(
    name="blocktile_1d",
    title="64 x 64 tile of C a block, 8 x 1 elements a thread",
    teaches=(
        "`tiled` reads two words of shared memory a product. A thread with 8 elements of a column keeps the word of B "
        "in a register for all 8, and the words of A are the same for the whole warp, four k to a read."
    ),
    look_for="shared wavefronts per FFMA, which limit `tiled`; FFMA among the instructions executed",
    launch=launch,
    build=build,
)
