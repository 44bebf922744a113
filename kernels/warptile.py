"""The parts of a warp-tiled block: 4 warps, each 64 x 64 of the block's 128 x 128 elements of C.

A warp's tile is four columns of 64 x 16 elements; in each, a lane computes 8 x 4 neighbours: 128 elements in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

BM, BN = 128, 128  # tile of C a block
WM, WN = 64, 64  # a warp
TM, TN = 8, 4  # a lane, in each of
STRIPS = 4  # columns of a warp's tile
LANES_ACROSS = WN // STRIPS // TN
THREADS = 32 * (BM // WM) * (BN // WN)


class Parts(NamedTuple):
    """Device functions of a block of THREADS threads. `at_a`, `at_b`, `words_a`, `words_b` and `acc` are local arrays.

    aligned(A, B, C)   whether all may be accessed 16 bytes at a time (see `four_words`)
    place(thread, row_0, col_0, k, m, n, depth, at_a, at_b)
                       fills in where the words are that a thread stages: A from row_0, B from col_0, K from k;
                       rows beyond the last repeat it
    fetch(A, B, thread, columns, left, fast, at_a, at_b, words_a, words_b)
                       reads them, and moves on by a tile; of B `columns` columns are left, of K `left`, and what is
                       beyond reads as 0 without an access
    stage(thread, k, words_a, words_b, tile_a, tile_b)   stores them at depth k of the shared tiles
    products(k, tile_a, tile_b, y, x, acc)   adds the products of K from k to k + bk - 1
    store(C, acc, row, col, fast, alpha, beta)   C = alpha acc + beta C, the lane's first element at row and col
    """

    aligned: Any
    place: Any
    fetch: Any
    stage: Any
    products: Any
    store: Any


def parts(bk: int) -> Parts:
    """New device functions for shared tiles of depth bk: tile_a [bk, BM] and tile_b [bk, BN]. Imports numba."""
    from numba import cuda, float32, int32, uint32

    from .four_words import access
    from .unroll import unrolled

    aligned, load, store_four, store_one = access()
    fours_a, fours_b = BM * bk // 4 // THREADS, BN * bk // 4 // THREADS  # that a thread stages
    rows_a, rows_b = THREADS // (bk // 4), THREADS // (BN // 4)  # of A, and of B, that a pass of all threads stages
    strip = WN // STRIPS

    @cuda.jit(device=True, forceinline=True)
    def place(thread, row_0, col_0, k, m, n, depth, at_a, at_b):
        row, k_a = uint32(row_0 + thread // (bk // 4)), uint32(k + thread % (bk // 4) * 4)
        col, k_b = uint32(col_0 + thread % (BN // 4) * 4), uint32(k + thread // (BN // 4))
        for i in range(fours_a):
            at_a[i] = min(row + i * rows_a, m - 1) * depth + k_a
        for i in range(fours_b):
            at_b[i] = (k_b + i * rows_b) * n + col

    @cuda.jit(device=True, forceinline=True)
    def fetch(A, B, thread, columns, left, fast, at_a, at_b, words_a, words_b):
        count_a = int32(left - thread % (bk // 4) * 4)
        count_b = int32(columns - thread % (BN // 4) * 4)
        for i in range(fours_a):
            words_a[i, 0], words_a[i, 1], words_a[i, 2], words_a[i, 3] = load(A, at_a[i], count_a, fast)
            at_a[i] += uint32(bk)
        for i in range(fours_b):
            count = count_b if int32(thread // (BN // 4) + i * rows_b) < left else int32(0)
            words_b[i, 0], words_b[i, 1], words_b[i, 2], words_b[i, 3] = load(B, at_b[i], count, fast)
            at_b[i] += uint32(bk * B.shape[1])

    @cuda.jit(device=True, forceinline=True)
    def stage(thread, k, words_a, words_b, tile_a, tile_b):
        k_a, row = uint32(k + thread % (bk // 4) * 4), uint32(thread // (bk // 4))
        k_b, col = uint32(k + thread // (BN // 4)), uint32(thread % (BN // 4) * 4)
        for i in range(fours_a):
            for e in range(4):
                tile_a[k_a + e, row + i * rows_a] = words_a[i, e]
        for i in range(fours_b):
            for e in range(4):
                tile_b[k_b + i * rows_b, col + e] = words_b[i, e]

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def outer_product(k, tile_a, tile_b, y, x, acc):
        a = cuda.local.array(TM, float32)
        b = cuda.local.array((STRIPS, TN), float32)
        for i in range(TM):
            a[i] = tile_a[k, y + i]
        for s in range(STRIPS):
            for j in range(TN):
                b[s, j] = tile_b[k, x + s * strip + j]
        for s in range(STRIPS):
            for i in range(TM):
                for j in range(TN):
                    acc[s, i, j] += a[i] * b[s, j]

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def store_strip(s, C, acc, row, col, fast, alpha, beta):
        m, n = uint32(C.shape[0]), uint32(C.shape[1])
        if fast:
            for i in range(TM):
                if uint32(row + i) < m and col < n:
                    at_c = uint32((row + i) * n + col)
                    store_four(C, at_c, alpha, beta, acc[s, i, 0], acc[s, i, 1], acc[s, i, 2], acc[s, i, 3])
        else:
            for i in range(TM):
                for j in range(TN):
                    inside = uint32(row + i) < m and uint32(col + j) < n
                    store_one(C, uint32((row + i) * n + (col + j)), inside, alpha, beta, acc[s, i, j])

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def store(C, acc, row, col, fast, alpha, beta):
        # Not a loop: NVVM would leave one so long rolled, and the sums, indexed by its counter, in local memory.
        store_strip(0, C, acc, row, col, fast, alpha, beta)
        store_strip(1, C, acc, row, uint32(col + strip), fast, alpha, beta)
        store_strip(2, C, acc, row, uint32(col + 2 * strip), fast, alpha, beta)
        store_strip(3, C, acc, row, uint32(col + 3 * strip), fast, alpha, beta)

    return Parts(aligned, place, fetch, stage, unrolled(outer_product, bk), store)
