"""What the tensor-core kernels share: the way of a warp's accumulators into C."""

from __future__ import annotations

from typing import Any


def tile_writer(tiles_m: int, tiles_n: int) -> Any:
    """A device function write(C, acc, row, col, alpha, beta): C = alpha acc + beta C for a warp's tiles of 16 x 8.

    acc   local array [tiles_m, tiles_n, 4], the fragments of mma.sync m16n8
    row, col   of the lane's first element: a lane holds columns 2 t and 2 t + 1 of rows g and g + 8 of each tile
    """
    from numba import cuda, int32

    from .intrinsics import global_address, load_global_f32_if, store_global_f32_if

    @cuda.jit(device=True)
    def write(C, acc, row, col, alpha, beta):
        # Three loops without branches: the compiler unrolls no others so far that each accumulator has a constant
        # index, without which they would move from registers to local memory.
        n = C.shape[1]
        rows, cols = int32(C.shape[0] - row), int32(n - col)  # that are left
        to = global_address(C) + (row * n + col) * 4
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] *= alpha
        if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
            for i in range(2 * tiles_m):
                for j in range(tiles_n):
                    for s in range(2):
                        inside = 8 * i < rows and 8 * j + s < cols
                        old = load_global_f32_if(to + 32 * i * n + 32 * j + 4 * s, inside)
                        acc[i // 2, j, i % 2 * 2 + s] += beta * old
        for i in range(2 * tiles_m):
            for j in range(tiles_n):
                for s in range(2):
                    inside = 8 * i < rows and 8 * j + s < cols
                    store_global_f32_if(to + 32 * i * n + 32 * j + 4 * s, acc[i // 2, j, i % 2 * 2 + s], inside)

    return write


def check_tiling(bm: int, bn: int, bk: int, wm: int, wn: int) -> None:
    """Raises ValueError unless the warps' tiles fill the block's and each of its threads has chunks to stage."""
    if bm % wm or bn % wn:
        raise ValueError(f"a block tile of {bm} x {bn} is not made of warp tiles of {wm} x {wn}")
    threads = 32 * (bm // wm) * (bn // wn)
    if threads > 1024:
        raise ValueError(f"{threads} threads a block are more than 1024: choose larger warp tiles")
    # Staging: 16-byte chunks, every thread in the same column of each eighth row (or more) of the tiles
    rows_a, rows_b = threads * 8 // bk, threads * 8 // bn
    if rows_a > bm or rows_b > bk:
        raise ValueError(f"{threads} threads are too many to stage tiles of {bm} x {bk} and {bk} x {bn}")
    if rows_a % 8 or rows_b % 8:
        raise ValueError(f"{threads} threads are too few to stage rows of {bk} and {bn}: choose smaller warp tiles")
