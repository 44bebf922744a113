"""What the tensor-core kernels share: a warp's products, the way of its sums into C, and which tile a block takes."""

from __future__ import annotations

from typing import Any


def warp_products(tiles_m: int, tiles_n: int) -> Any:
    """A device function products(A, fa, fb, which, acc): acc += a @ b for a warp's tiles of 16 x 8, 16 deep.

    fa, fb   local arrays [.., tiles_m, 4] and [.., tiles_n, 2] of uint32: fragments of A and B, set `which` of them
    acc      local array [tiles_m, tiles_n, 4]; A says whether the operands are f16 or bf16
    """
    from numba import cuda

    from .intrinsics import mma_m16n8k16

    @cuda.jit(device=True, forceinline=True)
    def products(A, fa, fb, which, acc):
        for j in range(tiles_n):
            for i in range(tiles_m):
                a = (fa[which, i, 0], fa[which, i, 1], fa[which, i, 2], fa[which, i, 3])
                old = (acc[i, j, 0], acc[i, j, 1], acc[i, j, 2], acc[i, j, 3])
                new = mma_m16n8k16(A, a, (fb[which, j, 0], fb[which, j, 1]), old)
                for r in range(4):
                    acc[i, j, r] = new[r]

    return products


def tile_writer(tiles_m: int, tiles_n: int, biased: bool = False, relu: bool = False) -> Any:
    """A device function write(C, acc, row, col, alpha, beta, bias): C = alpha acc + beta C, a warp's tiles of 16 x 8.

    acc   local array [tiles_m, tiles_n, 4], the fragments of mma.sync m16n8
    row, col   of the lane's first element: a lane holds columns 2 t and 2 t + 1 of rows g and g + 8 of each tile
    bias  where `biased`, the address of a vector [n] of float32 that is added to each row; `relu`: C = max(0, ...)
    """
    from numba import cuda, float32, int32, uint32, uint64

    from .intrinsics import (
        global_address,
        load_global_f32_if,
        load_global_f32x2_if,
        store_global_f32_if,
        store_global_f32x2_if,
    )

    @cuda.jit(device=True, forceinline=True)
    def write(C, acc, row, col, alpha, beta, bias):
        # Loops without branches: the compiler unrolls no others so far that each sum has a constant index, without
        # which they would move from registers to local memory.
        n = uint32(C.shape[1])
        rows, cols = int32(C.shape[0] - row), int32(C.shape[1] - col)  # that are left
        to, across = global_address(C) + (uint64(row) * uint64(n) + uint64(col)) * uint64(4), uint64(n) * uint64(32)
        pairs = n % 2 == 0 and global_address(C) % 8 == 0
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] *= alpha
        if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
            if pairs:
                for i in range(2 * tiles_m):
                    for j in range(tiles_n):
                        at = to + uint64(i) * across + uint64(32 * j)
                        old = load_global_f32x2_if(at, uint32(8 * i < rows and 8 * j < cols))
                        for s in range(2):
                            acc[i // 2, j, i % 2 * 2 + s] += beta * old[s]
            else:
                for i in range(2 * tiles_m):
                    for j in range(tiles_n):
                        for s in range(2):
                            at = to + uint64(i) * across + uint64(32 * j + 4 * s)
                            old = load_global_f32_if(at, uint32(8 * i < rows and 8 * j + s < cols))
                            acc[i // 2, j, i % 2 * 2 + s] += beta * old
        if biased:
            for j in range(tiles_n):
                for s in range(2):
                    one = load_global_f32_if(bias + uint64(4) * uint64(col + 8 * j + s), uint32(8 * j + s < cols))
                    for i in range(2 * tiles_m):
                        acc[i // 2, j, i % 2 * 2 + s] += one
        if relu:
            for i in range(tiles_m):
                for j in range(tiles_n):
                    for r in range(4):
                        acc[i, j, r] = max(acc[i, j, r], float32(0))
        if pairs:
            for i in range(2 * tiles_m):
                for j in range(tiles_n):
                    both = (acc[i // 2, j, i % 2 * 2], acc[i // 2, j, i % 2 * 2 + 1])
                    at = to + uint64(i) * across + uint64(32 * j)
                    store_global_f32x2_if(at, both, uint32(8 * i < rows and 8 * j < cols))
        else:
            for i in range(2 * tiles_m):
                for j in range(tiles_n):
                    for s in range(2):
                        at = to + uint64(i) * across + uint64(32 * j + 4 * s)
                        inside = uint32(8 * i < rows and 8 * j + s < cols)
                        store_global_f32_if(at, acc[i // 2, j, i % 2 * 2 + s], inside)

    return write


def raster(bm: int, bn: int, group: int) -> Any:
    """A device function first() -> (row, column) of the block's tile of C, bm x bn.

    Blocks are numbered along x; they take tiles down the rows of a group of `group` rows of tiles, then the next
    column: the blocks under way at one time share rows of A and columns of B in L2. The last group may be smaller.
    """
    from numba import cuda, uint32

    @cuda.jit(device=True, forceinline=True)
    def first():
        across, down = uint32(cuda.gridDim.x), uint32(cuda.gridDim.y)
        block = uint32(cuda.blockIdx.y * across + cuda.blockIdx.x)
        top = uint32(block // uint32(group * across) * uint32(group))
        rows = uint32(min(uint32(down - top), uint32(group)))
        within = uint32(block - top * across)
        return uint32(uint32(top + within % rows) * uint32(bm)), uint32(within // rows * uint32(bn))

    return first
