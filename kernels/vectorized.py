"""blocktile_2d with 128-bit accesses throughout: global loads and stores, and A's tile transposed for shared loads.

A 128-bit access of global memory needs rows that start at multiples of 16 bytes: where n or k is no multiple of 4, or a
matrix lies elsewhere, the kernel reads and writes word by word.
"""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, ceil_div

BM, BN, BK = 128, 128, 8  # tile of C, depth of the shared tiles
TM, TN = 8, 8  # elements of C a thread
ACROSS = BN // TN  # threads side by side
THREADS = (BM // TM) * ACROSS  # each stages four words of A and four of B


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build() -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, int32, uint32

    from .four_words import access
    from .unroll import unrolled

    aligned, load, store, store_one = access()

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def outer_product(k, tile_a, tile_b, y, x, acc):
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            a[i] = tile_a[k, y + i]
        for j in range(TN):
            b[j] = tile_b[k, x + j]
        for i in range(TM):
            for j in range(TN):
                acc[i, j] += a[i] * b[j]

    all_products = unrolled(outer_product, BK)

    @cuda.jit(fastmath=True, mav1registers=128)  # as in blocktile_2d: two blocks an SM
    def vectorized(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BK, BM), float32, 16)  # tile_a[k, row]: a thread's rows are neighbours
        tile_b = cuda.shared.array((BK, BN), float32, 16)
        acc = cuda.local.array((TM, TN), float32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        fast = aligned(A, B, C)
        thread = uint32(cuda.threadIdx.x)
        row_0, col_0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        # The words that this thread stages; rows outside the matrices repeat the last one.
        row_a, k_a = uint32(thread // (BK // 4)), uint32(thread % (BK // 4) * 4)
        k_b, col_b = uint32(thread // (BN // 4)), uint32(thread % (BN // 4) * 4)
        at_a = uint32(min(uint32(row_0 + row_a), m - 1) * depth + k_a)
        at_b = uint32(k_b * n + uint32(col_0 + col_b))
        columns = int32(n - uint32(col_0 + col_b))
        y, x = uint32(thread // ACROSS * TM), uint32(thread % ACROSS * TN)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = float32(0)
        for k0 in range(0, A.shape[1], BK):
            left = uint32(depth - k0)
            a0, a1, a2, a3 = load(A, at_a, int32(left - k_a), fast)  # both loads before the stores that wait for them
            b0, b1, b2, b3 = load(B, at_b, columns if k_b < left else int32(0), fast)
            tile_a[k_a, row_a], tile_a[k_a + 1, row_a] = a0, a1
            tile_a[k_a + 2, row_a], tile_a[k_a + 3, row_a] = a2, a3
            tile_b[k_b, col_b], tile_b[k_b, col_b + 1] = b0, b1
            tile_b[k_b, col_b + 2], tile_b[k_b, col_b + 3] = b2, b3
            at_a = uint32(at_a + BK)
            at_b = uint32(at_b + BK * n)
            cuda.syncthreads()
            all_products(uint32(0), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        row, col = uint32(row_0 + y), uint32(col_0 + x)
        if fast:
            for i in range(TM):
                for j in range(0, TN, 4):
                    if uint32(row + i) < m and uint32(col + j) < n:
                        at_c = uint32((row + i) * n + (col + j))
                        store(C, at_c, alpha, beta, acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
        else:
            for i in range(TM):
                for j in range(TN):
                    inside = uint32(row + i) < m and uint32(col + j) < n
                    store_one(C, uint32((row + i) * n + (col + j)), inside, alpha, beta, acc[i, j])

    return vectorized


INFO = KernelInfo(
    name="vectorized",
    title="blocktile_2d with 128-bit accesses",
    teaches=(
        "One instruction that moves 16 bytes a lane does the work of four: global loads and stores become a quarter. "
        "A's tile is stored transposed, so that a thread's 8 words of A for one k are two reads of 128 bits and need 8 "
        "registers; the price is scalar, conflicting stores into it."
    ),
    look_for="LDG.128 and STG.128, global requests and sectors per request (16); conflicts where tile_a is stored",
    launch=launch,
    build=build,
)
