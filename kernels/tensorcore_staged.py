"""Tiles of A and B on their way through registers into one or two pairs of padded shared tiles, and the loop over K."""

from __future__ import annotations

from typing import Any

from .tensorcore_tiles import Shape, tiles


def pair_of_tiles(bm: int, bn: int, bk: int, wm: int, wn: int) -> Shape:
    """Raises ValueError, one line, where the sizes do not fit together."""
    shape = Shape(bm, bn, bk, wm, wn, padded=True)
    shape.check()
    return shape


def multiplier(shape: Shape, buffers: int) -> Any:
    """A device function multiply(A, B, n, depth, row0, col0, acc): acc = A @ B for each warp's tile of a block's.

    row0, col0   of the block's tile; acc: local array [wm / 16, wn / 8, 4] of float32, as mma.sync m16n8 has it
    buffers      1: a tile is loaded when the one before it has been used; 2: while it is used
    """
    from numba import cuda, float32, int32, uint32, uint64
    from numba.cuda import types

    from .intrinsics import (
        global_address,
        load_global_b32x4,
        load_global_b32x4_if,
        load_global_b32x4_or_not,
        shared_address,
        store_shared_b32x4,
    )

    bm, bn, bk, wm, wn, _ = shape
    a_pitch, b_pitch, pair_bytes = shape.a_pitch, shape.b_pitch, shape.bytes
    a_step, b_step = shape.threads // (bk // 8), shape.threads // 8
    a_copies, b_rows, b_copies = bm // a_step, -(-bk // b_step), bn // 64
    b_total, all_stage_b = b_rows * b_copies, b_step <= bk
    sets, steps, tiles_m, tiles_n, pairs_n = min(bk // 16, 2), bk // 16, wm // 16, wn // 8, wn // 16
    held, staging_a, staging_b, reading, _, _, compute, by_elements, _ = tiles(shape)

    @cuda.jit(device=True, forceinline=True)
    def fetch(skip_a, from_a, from_b, n, columns, words_a, words_b):  # a whole tile; after two tiles, A is moved on
        for i in range(a_copies):
            words = load_global_b32x4(from_a[i] + uint64(skip_a))
            for r in range(4):
                words_a[i, r] = words[r]
            if skip_a > 0:
                from_a[i] += uint64(4 * bk)
        for i in range(b_total):
            # What lies beyond C's columns is not read: C has no place for what becomes of it
            here = uint32(64 * (i % b_copies) < columns)
            words = load_global_b32x4_or_not(from_b[i // b_copies] + uint64(128 * (i % b_copies)), here)
            for r in range(4):
                words_b[i, r] = words[r]
        for i in range(b_rows):
            from_b[i] += uint64(n) * uint64(2 * bk)

    @cuda.jit(device=True, forceinline=True)
    def stage(at, to_a, to_b, row_b, words_a, words_b):
        for i in range(a_copies):
            words = (words_a[i, 0], words_a[i, 1], words_a[i, 2], words_a[i, 3])
            store_shared_b32x4(uint32(to_a + (at + i * a_step * a_pitch)), words)
        if all_stage_b or row_b < bk:
            for i in range(b_total):
                words = (words_b[i, 0], words_b[i, 1], words_b[i, 2], words_b[i, 3])
                to = at + i // b_copies * b_step * b_pitch + i % b_copies * 128
                store_shared_b32x4(uint32(to_b + to), words)

    @cuda.jit(device=True, forceinline=True)
    def used(A, to_a, to_b, row_b, words_a, words_b, read_a, read_b, fa, fb, acc):
        stage(0, to_a, to_b, row_b, words_a, words_b)
        cuda.syncthreads()
        compute(0, A, read_a, read_b, fa, fb, acc)
        cuda.syncthreads()

    @cuda.jit(device=True, forceinline=True)
    def by_chunks(A, B, m, n, depth, row0, col0, start, read_a, read_b, fa, fb, acc):
        """Rows of A and B start at multiples of 16 bytes. Rows of A beyond the last repeat it. It is the first tile
        that K does not fill; its rest is zero."""
        from_a, from_b = cuda.local.array(a_copies, uint64), cuda.local.array(b_rows, uint64)
        words_a, words_b = cuda.local.array((a_copies, 4), uint32), cuda.local.array((b_total, 4), uint32)
        thread = uint32(cuda.threadIdx.x)
        row_a, chunk_a, at_a = staging_a(thread)
        row_b, chunk_b, at_b = staging_b(thread)
        to_a, to_b = held(uint32(start + at_a)), held(uint32(start + at_b))
        left = int32((depth + (bk - 1)) // bk)  # tiles
        first = uint32(depth - uint32(left - 1) * bk)  # columns of A and rows of B in the first tile
        columns = int32(n - (col0 + 8 * chunk_b)) if all_stage_b or row_b < bk else int32(0)
        for i in range(a_copies):
            row = uint64(min(uint32(row0 + row_a + i * a_step), uint32(m - 1)))
            from_a[i] = global_address(A) + (row * uint64(depth) + uint64(8 * chunk_a)) * uint64(2)
            words = load_global_b32x4_if(from_a[i], uint32(8 * chunk_a < first))
            for r in range(4):
                words_a[i, r] = words[r]
            from_a[i] += uint64(2 * first)
        for i in range(b_rows):
            row = uint32(row_b + i * b_step)
            from_b[i] = global_address(B) + (uint64(row) * uint64(n) + uint64(col0 + 8 * chunk_b)) * uint64(2)
            for j in range(b_copies):
                words = load_global_b32x4_if(from_b[i] + uint64(128 * j), uint32(row < first and 64 * j < columns))
                for r in range(4):
                    words_b[i * b_copies + j, r] = words[r]
            from_b[i] += uint64(2 * first) * uint64(n)
        if buffers == 1:
            while left > 2:
                used(A, to_a, to_b, row_b, words_a, words_b, read_a, read_b, fa, fb, acc)
                fetch(0, from_a, from_b, n, columns, words_a, words_b)
                used(A, to_a, to_b, row_b, words_a, words_b, read_a, read_b, fa, fb, acc)
                fetch(2 * bk, from_a, from_b, n, columns, words_a, words_b)
                left = int32(left - 2)
            if left > 1:
                used(A, to_a, to_b, row_b, words_a, words_b, read_a, read_b, fa, fb, acc)
                fetch(0, from_a, from_b, n, columns, words_a, words_b)
            used(A, to_a, to_b, row_b, words_a, words_b, read_a, read_b, fa, fb, acc)
            return
        stage(0, to_a, to_b, row_b, words_a, words_b)
        cuda.syncthreads()
        while left > 2:
            fetch(0, from_a, from_b, n, columns, words_a, words_b)
            compute(0, A, read_a, read_b, fa, fb, acc)
            stage(pair_bytes, to_a, to_b, row_b, words_a, words_b)
            cuda.syncthreads()  # the next pair is complete, and no warp still reads this one
            fetch(2 * bk, from_a, from_b, n, columns, words_a, words_b)
            compute(pair_bytes, A, read_a, read_b, fa, fb, acc)
            stage(0, to_a, to_b, row_b, words_a, words_b)
            cuda.syncthreads()
            left = int32(left - 2)
        if left > 1:
            fetch(0, from_a, from_b, n, columns, words_a, words_b)
        compute(0, A, read_a, read_b, fa, fb, acc)
        if left > 1:
            stage(pair_bytes, to_a, to_b, row_b, words_a, words_b)
            cuda.syncthreads()
            compute(pair_bytes, A, read_a, read_b, fa, fb, acc)

    @cuda.jit(device=True, forceinline=True)
    def multiply(A, B, n, depth, row0, col0, acc):
        start = shared_address(cuda.shared.array(0, types.uint16))  # carries bits: f16 and bf16 alike
        fa, fb = cuda.local.array((sets, tiles_m, 4), uint32), cuda.local.array((sets, tiles_n, 2), uint32)
        read_a, read_b = cuda.local.array(steps, uint32), cuda.local.array(pairs_n, uint32)
        m = uint32(A.shape[0])
        reading(start, read_a, read_b)
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] = float32(0)
        # 16 bytes at a time only where every row of A and B starts at a multiple of 16
        if depth % 8 == 0 and n % 8 == 0 and (global_address(A) | global_address(B)) % 16 == 0:
            by_chunks(A, B, m, n, depth, row0, col0, start, read_a, read_b, fa, fb, acc)
        else:
            by_elements(A, B, m, n, depth, row0, col0, start, read_a, read_b, fa, fb, acc)

    return multiply
