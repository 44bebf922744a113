"""Shared tiles of 32-bit words, whatever a word carries: one TF32 number, or four bytes along K."""

from __future__ import annotations

from typing import Any


def stager(load_a: Any, load_b: Any, bm: int, bn: int, words: int, threads: int) -> Any:
    """A device function stage(A, B, row0, col0, word0, tile_a, tile_b): all threads of a block fill its tiles.

    load_a(A, row, word), load_b(B, word, col)   device functions: the word there, 0 outside the matrix
    tile_a [bm, words + 4], tile_b [words, bn + 8]   of uint32; padded so that fragments come without bank conflicts
    """
    from numba import cuda, uint32

    @cuda.jit(device=True, forceinline=True)
    def stage(A, B, row0, col0, word0, tile_a, tile_b):
        thread = uint32(cuda.threadIdx.x)
        for i in range(thread, uint32(bm * words), threads):
            row, word = uint32(i // words), uint32(i % words)
            tile_a[row, word] = load_a(A, uint32(row0 + row), uint32(word0 + word))
        for i in range(thread, uint32(bn * words), threads):
            word, col = uint32(i // bn), uint32(i % bn)
            tile_b[word, col] = load_b(B, uint32(word0 + word), uint32(col0 + col))

    return stage


def products(mma: Any, tiles_m: int, tiles_n: int) -> Any:
    """A device function multiply(tile_a, tile_b, y, x, w, acc): a warp's tiles of 16 x 8, 8 words deep from word w.

    mma    mma.sync m16n8k8 of TF32 or m16n8k32 of bytes: their fragments are alike, a word at (row g, word t) and so on
    y, x   of the lane's first element in the tiles: the warp's row + g, the warp's column + g, with g = lane // 4
    acc    local array [tiles_m, tiles_n, 4]
    """
    from numba import cuda, uint32

    @cuda.jit(device=True, forceinline=True)
    def multiply(tile_a, tile_b, y, x, w, acc):
        fb = cuda.local.array((tiles_n, 2), uint32)
        for j in range(tiles_n):
            for r in range(2):
                fb[j, r] = tile_b[uint32(w + 4 * r), uint32(x + 8 * j)]
        for i in range(tiles_m):
            top, bottom = uint32(y + 16 * i), uint32(y + 16 * i + 8)
            right = uint32(w + 4)
            a = (tile_a[top, w], tile_a[bottom, w], tile_a[top, right], tile_a[bottom, right])
            for j in range(tiles_n):
                old = (acc[i, j, 0], acc[i, j, 1], acc[i, j, 2], acc[i, j, 3])
                new = mma(a, (fb[j, 0], fb[j, 1]), old)
                for r in range(4):
                    acc[i, j, r] = new[r]

    return multiply


def bytes_along_k() -> tuple[Any, Any]:
    """load_a and load_b of `stager` for int8 matrices: word w carries K = 4 w to 4 w + 3, the first in the low bits.

    A's four bytes are neighbours, B's lie in four rows: they are packed one by one, which transposes B on the way.
    """
    from numba import cuda, uint8, uint32

    @cuda.jit(device=True, forceinline=True)
    def load_a(A, row, word):
        packed = uint32(0)
        if row < A.shape[0]:
            for e in range(4):
                k = uint32(4 * word + e)
                if k < A.shape[1]:
                    packed |= uint32(uint32(uint8(A[row, k])) << uint32(8 * e))
        return packed

    @cuda.jit(device=True, forceinline=True)
    def load_b(B, word, col):
        packed = uint32(0)
        if col < B.shape[1]:
            for e in range(4):
                k = uint32(4 * word + e)
                if k < B.shape[0]:
                    packed |= uint32(uint32(uint8(B[k, col])) << uint32(8 * e))
        return packed

    return load_a, load_b
