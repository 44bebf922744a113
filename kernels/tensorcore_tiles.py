"""Tiles of A and B in shared memory that ldmatrix reads: where their words lie, a warp's fragments, its products."""

from __future__ import annotations

from typing import Any, NamedTuple

from .tensorcore_parts import warp_products


class Shape(NamedTuple):
    """A block's tile of C is bm x bn, a warp's wm x wn; the tiles of A and B are bk deep, their elements 16 bits.

    padded   rows are 16 bytes longer than they need be; if not, their 16-byte chunks are permuted (XOR with the row's
             number). Either way eight rows of the same column lie in different banks.
    """

    bm: int
    bn: int
    bk: int
    wm: int
    wn: int
    padded: bool

    @property
    def threads(self) -> int:
        return 32 * (self.bm // self.wm) * (self.bn // self.wn)

    @property
    def a_pitch(self) -> int:
        """Bytes from a row of A's tile to the next."""
        return 2 * self.bk + 16 * self.padded

    @property
    def b_pitch(self) -> int:
        return 2 * self.bn + 16 * self.padded

    @property
    def a_bytes(self) -> int:
        return self.bm * self.a_pitch

    @property
    def bytes(self) -> int:
        """Of both tiles, B's after A's."""
        return self.a_bytes + self.bk * self.b_pitch

    def check(self) -> None:
        """Raises ValueError unless the warps' tiles fill the block's and its threads can stage tiles of whole rows."""
        bm, bn, bk, threads = self.bm, self.bn, self.bk, self.threads
        if bm % self.wm or bn % self.wn:
            raise ValueError(f"a block tile of {bm} x {bn} is not made of warp tiles of {self.wm} x {self.wn}")
        if threads > 1024:
            raise ValueError(f"{threads} threads a block are more than 1024: choose larger warp tiles")
        # Every thread stages 16 bytes of A in a step of threads * 8 / bk rows, and of B in one of threads / 8
        if threads * 8 // bk > bm:
            raise ValueError(f"{threads} threads are too many to stage tiles of {bm} x {bk} and {bk} x {bn}")
        if threads < 64:
            raise ValueError(f"{threads} threads are too few to stage eight rows at a time: choose smaller warp tiles")


class Tiles(NamedTuple):
    """Device functions. `read_a`, `read_b`, `fa`, `fb`, `acc` are the local arrays of a warp's lane.

    held(value)   a uint32 in a form that the compiler keeps in a register: it would compute it again in the loop
    staging_a(thread), staging_b(thread)   -> row, chunk (of 16 bytes) and byte in the tiles of what a thread stages,
                  then of every a_step-th row of A, and of B of each eighth chunk of every b_step-th row
    reading(start, read_a, read_b)   fills in where a lane reads; start: address of the tiles
    fragments(at, k, read_a, read_b, fa, fb, which)   the k-th 16 columns of A and rows of B; at: constant, in bytes
    pair(at, k, A, ...)   products of k, while the fragments of k + 1 come, and again: set 0 is of k before, k + 2 after
    compute(at, A, read_a, read_b, fa, fb, acc)   the products of a whole tile
    by_elements(A, B, m, n, depth, row0, col0, start, ...)   acc += A @ B for any A and B: a tile at a time, element by
                  element
    """

    held: Any
    staging_a: Any
    staging_b: Any
    reading: Any
    fragments: Any
    pair: Any
    compute: Any
    by_elements: Any
    products: Any


def tiles(shape: Shape) -> Tiles:
    from numba import cuda, int32, uint32, uint64

    from .intrinsics import (
        global_address,
        ldmatrix_x4_at,
        ldmatrix_x4_trans_at,
        load_global_b16_if,
        store_shared_b16,
    )

    bm, bn, bk, wm, wn, padded = shape
    a_pitch, b_pitch, a_bytes = shape.a_pitch, shape.b_pitch, shape.a_bytes
    a_chunks, b_copies, warps_n = bk // 8, bn // 64, bn // wn
    a_rows_in_banks = max(8 // a_chunks, 1)  # rows of A may be shorter than the 128 bytes that the banks hold
    a_step, b_step = shape.threads // a_chunks, shape.threads // 8
    a_copies, b_rows = bm // a_step, -(-bk // b_step)
    steps, tiles_m, tiles_n, pairs_n = bk // 16, wm // 16, wn // 8, wn // 16
    products = warp_products(tiles_m, tiles_n)

    @cuda.jit(device=True, forceinline=True)
    def held(value):
        return uint32(cuda.shfl_sync(0xFFFFFFFF, int32(value), int32(cuda.laneid)))

    @cuda.jit(device=True, forceinline=True)
    def staging_a(thread):
        if padded:  # eight lanes store a column of eight rows: those are in different banks
            row, chunk = uint32(thread // (8 * a_chunks) * 8 + thread % 8), uint32(thread // 8 % a_chunks)
            return row, chunk, uint32(row * a_pitch + chunk * 16)
        row, chunk = uint32(thread // a_chunks), uint32(thread % a_chunks)
        # The rows that a thread stages are alike in the bits that choose the permutation
        return row, chunk, uint32(row * a_pitch + (chunk ^ row // a_rows_in_banks % a_chunks) * 16)

    @cuda.jit(device=True, forceinline=True)
    def staging_b(thread):
        row, chunk = uint32(thread // 8), uint32(thread % 8)
        if padded:
            return row, chunk, uint32(a_bytes + row * b_pitch + chunk * 16)
        return row, chunk, uint32(a_bytes + row * b_pitch + (chunk ^ row % 8) * 16)

    @cuda.jit(device=True, forceinline=True)
    def reading(start, read_a, read_b):
        # ldmatrix: lanes 0 to 15 address rows 0 to 15 of the first 8 columns, lanes 16 to 31 of the next 8
        lane, warp = uint32(cuda.threadIdx.x % 32), uint32(cuda.threadIdx.x // 32)
        row = uint32(lane % 16)
        warp_row, warp_chunk = uint32(warp // warps_n * wm), uint32(warp % warps_n * (wn // 8))
        row_a, row_b = uint32(start + (warp_row + row) * a_pitch), uint32(start + a_bytes + row * b_pitch)
        for k in range(steps):
            chunk = uint32(2 * k + lane // 16)
            if not padded:
                chunk ^= uint32(row // a_rows_in_banks % a_chunks)
            read_a[k] = held(uint32(row_a + chunk * 16))
        for j in range(pairs_n):
            chunk = uint32(warp_chunk + 2 * j + lane // 16)
            if not padded:
                chunk ^= uint32(row % 8)
            read_b[j] = held(uint32(row_b + chunk * 16))

    @cuda.jit(device=True, forceinline=True)
    def fragments(at, k, read_a, read_b, fa, fb, which):
        for i in range(tiles_m):
            rows = ldmatrix_x4_at(read_a[k], uint32(at + 16 * i * a_pitch))
            for r in range(4):
                fa[which, i, r] = rows[r]
        for j in range(pairs_n):
            columns = ldmatrix_x4_trans_at(read_b[j], uint32(at + 16 * k * b_pitch))
            for s in range(2):
                for r in range(2):
                    fb[which, 2 * j + s, r] = columns[2 * s + r]

    @cuda.jit(device=True, forceinline=True)
    def pair(at, k, A, read_a, read_b, fa, fb, acc):
        fragments(at, k + 1, read_a, read_b, fa, fb, 1)
        products(A, fa, fb, 0, acc)
        fragments(at, k + 2, read_a, read_b, fa, fb, 0)
        products(A, fa, fb, 1, acc)

    @cuda.jit(device=True, forceinline=True)
    def compute(at, A, read_a, read_b, fa, fb, acc):
        fragments(at, 0, read_a, read_b, fa, fb, 0)
        if steps == 4:
            pair(at, 0, A, read_a, read_b, fa, fb, acc)
        if steps > 1:
            fragments(at, steps - 1, read_a, read_b, fa, fb, 1)
        products(A, fa, fb, 0, acc)
        if steps > 1:
            products(A, fa, fb, 1, acc)

    @cuda.jit(device=True, forceinline=True)
    def by_elements(A, B, m, n, depth, row0, col0, start, read_a, read_b, fa, fb, acc):
        thread = uint32(cuda.threadIdx.x)
        row_a, chunk_a, at_a = staging_a(thread)
        row_b, chunk_b, at_b = staging_b(thread)
        from_a = global_address(A) + (uint64(row0 + row_a) * uint64(depth) + uint64(8 * chunk_a)) * uint64(2)
        from_b = global_address(B) + (uint64(row_b) * uint64(n) + uint64(col0 + 8 * chunk_b)) * uint64(2)
        rows_a, cols_b = int32(m - (row0 + row_a)), int32(n - (col0 + 8 * chunk_b))  # that are left
        cols_a, rows_b = int32(depth - 8 * chunk_a), int32(depth - row_b)
        for _ in range(0, depth, bk):
            for i in range(a_copies):
                for e in range(8):
                    at = from_a + uint64(depth) * uint64(i * a_step * 2) + uint64(2 * e)
                    value = load_global_b16_if(at, uint32(a_step * i < rows_a and e < cols_a))
                    store_shared_b16(uint32(start + at_a + (i * a_step * a_pitch + 2 * e)), value)
            if row_b < bk:
                for i in range(b_rows * b_copies):
                    at = from_b + uint64(n) * uint64(i // b_copies * b_step * 2) + uint64(i % b_copies * 128)
                    to = uint32(start + at_b + (i // b_copies * b_step * b_pitch + i % b_copies * 128))
                    for e in range(8):
                        inside = b_step * (i // b_copies) < rows_b and 64 * (i % b_copies) + e < cols_b
                        store_shared_b16(uint32(to + 2 * e), load_global_b16_if(at + uint64(2 * e), uint32(inside)))
            from_a, from_b = from_a + uint64(2 * bk), from_b + uint64(n) * uint64(2 * bk)
            cols_a, rows_b = int32(cols_a - bk), int32(rows_b - bk)
            cuda.syncthreads()
            compute(0, A, read_a, read_b, fa, fb, acc)
            cuda.syncthreads()

    return Tiles(held, staging_a, staging_b, reading, fragments, pair, compute, by_elements, products)
