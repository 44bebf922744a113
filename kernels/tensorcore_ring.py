"""A ring of tiles in shared memory that cp.async fills and ldmatrix reads, and the loop over K that turns it."""

from __future__ import annotations

from typing import Any

from .tensorcore_tiles import Shape, tiles


def ring(bm: int, bn: int, bk: int, wm: int, wn: int) -> Shape:
    """The shape of a slot. Raises ValueError, one line, where the sizes do not fit together."""
    shape = Shape(bm, bn, bk, wm, wn, padded=False)
    shape.check()
    if shape.threads // 8 > bk:
        raise ValueError(f"{shape.threads} threads are too many to stage tiles of {bm} x {bk} and {bk} x {bn}")
    return shape


def multiplier(shape: Shape, stages: int) -> Any:
    """A device function multiply(A, B, n, depth, row0, col0, acc): acc = A @ B for each warp's tile of a block's.

    row0, col0   of the block's tile; acc: local array [wm / 16, wn / 8, 4] of float32, as mma.sync m16n8 has it

    Everything that differs from slot to slot of the ring is a constant: the loop over K is written out for all slots.
    """
    from numba import cuda, float32, int32, uint32, uint64
    from numba.cuda import types

    from .intrinsics import (
        cp_async_cg_16_if,
        cp_async_commit_group,
        cp_async_wait_group,
        global_address,
        shared_address,
    )

    bm, bn, bk, wm, wn, _ = shape
    a_pitch, b_pitch, slot_bytes = shape.a_pitch, shape.b_pitch, shape.bytes
    a_step, b_step = shape.threads // (bk // 8), shape.threads // 8
    a_copies, b_rows, b_copies = bm // a_step, bk // b_step, bn // 64
    ahead, pending = stages - 1, stages - 2
    steps, tiles_m, tiles_n, pairs_n = bk // 16, wm // 16, wn // 8, wn // 16
    held, staging_a, staging_b, reading, fragments, pair, _, by_elements, products = tiles(shape)

    @cuda.jit(device=True, forceinline=True)
    def copy(slot, skip_a, to_a, to_b, from_a, from_b, wanted, columns):  # a whole tile, or zeros
        for i in range(a_copies):
            to = uint32(slot * slot_bytes + i * a_step * a_pitch)
            cp_async_cg_16_if(to_a, to, from_a[i], uint32(skip_a), wanted, uint32(1))
        for i in range(b_rows):
            for j in range(b_copies):
                to = uint32(slot * slot_bytes + i * b_step * b_pitch + 128 * j)
                cp_async_cg_16_if(to_b, to, from_b[i], uint32(128 * j), wanted, uint32(64 * j < columns))
        cp_async_commit_group()

    def turn(slot: int) -> Any:
        """A device function: the tiles in the ring's slots from `slot` on, as far as there are tiles."""
        following, free = (slot + 1) % stages, (slot + ahead) % stages
        last = following == 0
        rest = fragments if last else turn(following)

        @cuda.jit(device=True, forceinline=True)
        def through(A, n, left, columns, to_a, to_b, from_a, from_b, read_a, read_b, fa, fb, acc):
            if steps == 4:
                pair(slot * slot_bytes, 0, A, read_a, read_b, fa, fb, acc)
            fragments(slot * slot_bytes, steps - 1, read_a, read_b, fa, fb, 1)
            copy(free, slot * 2 * bk, to_a, to_b, from_a, from_b, uint32(left[0] > ahead), columns)
            for i in range(b_rows):
                from_b[i] += uint64(n) * uint64(2 * bk)
            if last:
                for i in range(a_copies):
                    from_a[i] += uint64(stages * 2 * bk)
            products(A, fa, fb, 0, acc)
            cp_async_wait_group(pending)
            cuda.syncthreads()  # all copies of the next tile have arrived, and no warp still reads this one
            fragments(following * slot_bytes, 0, read_a, read_b, fa, fb, 0)
            products(A, fa, fb, 1, acc)
            left[0] = int32(left[0] - 1)
            if not last and left[0] > 0:
                rest(A, n, left, columns, to_a, to_b, from_a, from_b, read_a, read_b, fa, fb, acc)

        return through

    whole_turn = turn(0)

    @cuda.jit(device=True, forceinline=True)
    def by_chunks(A, B, m, n, depth, row0, col0, start, read_a, read_b, fa, fb, acc):
        """Rows of A and B start at multiples of 16 bytes. Rows of A beyond the last repeat it, columns of B beyond the
        last are left as they are: C has no place for what becomes of them. It is the first tile that K does not fill;
        its rest is zero."""
        from_a, from_b = cuda.local.array(a_copies, uint64), cuda.local.array(b_rows, uint64)
        left = cuda.local.array(1, int32)  # tiles
        thread = uint32(cuda.threadIdx.x)
        row_a, chunk_a, at_a = staging_a(thread)
        row_b, chunk_b, at_b = staging_b(thread)
        to_a, to_b = held(uint32(start + at_a)), held(uint32(start + at_b))
        count = int32((depth + (bk - 1)) // bk)
        first = uint32(depth - uint32(count - 1) * bk)  # columns of A and rows of B in the first tile
        columns = int32(n - (col0 + 8 * chunk_b))
        for i in range(a_copies):
            row = uint64(min(uint32(row0 + row_a + i * a_step), uint32(m - 1)))
            from_a[i] = global_address(A) + (row * uint64(depth) + uint64(8 * chunk_a)) * uint64(2)
            to, wanted = uint32(i * a_step * a_pitch), uint32(8 * chunk_a < first)
            cp_async_cg_16_if(to_a, to, from_a[i], uint32(0), wanted, uint32(1))
            from_a[i] += uint64(2 * first)
        for i in range(b_rows):
            row = uint32(row_b + i * b_step)
            from_b[i] = global_address(B) + (uint64(row) * uint64(n) + uint64(col0 + 8 * chunk_b)) * uint64(2)
            for j in range(b_copies):
                to, wanted = uint32(i * b_step * b_pitch + 128 * j), uint32(row < first)
                cp_async_cg_16_if(to_b, to, from_b[i], uint32(128 * j), wanted, uint32(64 * j < columns))
            from_b[i] += uint64(2 * first) * uint64(n)
        cp_async_commit_group()
        for slot in range(1, ahead):
            copy(slot, (slot - 1) * 2 * bk, to_a, to_b, from_a, from_b, uint32(slot < count), columns)
            for i in range(b_rows):
                from_b[i] += uint64(n) * uint64(2 * bk)
        for i in range(a_copies):
            from_a[i] += uint64((ahead - 1) * 2 * bk)
        cp_async_wait_group(pending)
        cuda.syncthreads()
        fragments(0, 0, read_a, read_b, fa, fb, 0)
        left[0] = count
        while left[0] > 0:
            whole_turn(A, n, left, columns, to_a, to_b, from_a, from_b, read_a, read_b, fa, fb, acc)

    @cuda.jit(device=True, forceinline=True)
    def multiply(A, B, n, depth, row0, col0, acc):
        start = shared_address(cuda.shared.array(0, types.uint16))  # carries bits: f16 and bf16 alike
        fa, fb = cuda.local.array((2, tiles_m, 4), uint32), cuda.local.array((2, tiles_n, 2), uint32)
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
