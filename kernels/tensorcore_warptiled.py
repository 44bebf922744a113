"""Tensor cores fed from shared memory: block tiles of A and B, padded rows, ldmatrix, and a tile of C a warp."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .tensorcore_parts import check_tiling, tile_writer


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    check_tiling(**tunables)
    bm, bn = tunables["bm"], tunables["bn"]
    warps = bm // tunables["wm"] * (bn // tunables["wn"])
    return LaunchShape(grid=(ceil_div(n, bn), ceil_div(m, bm), 1), block=(32 * warps, 1, 1))


def build(bm: int, bn: int, bk: int, wm: int, wn: int) -> Any:
    from numba import cuda, float32, int32, uint32
    from numba.cuda import types

    from .intrinsics import (
        global_address,
        ldmatrix_x4,
        ldmatrix_x4_trans,
        load_global_b16_if,
        load_global_b32x4_if,
        mma_m16n8k16,
        shared_address,
        store_shared_b16,
        store_shared_b32x4,
    )

    write = tile_writer(wm // 16, wn // 8)
    half = types.uint16  # the tiles only carry bits: f16 and bf16 alike
    threads = bm // wm * (bn // wn) * 32
    padded_bk, padded_bn = bk + 8, bn + 8  # so that eight rows lie in different banks
    a_row, b_row = 2 * padded_bk, 2 * padded_bn  # bytes
    # A thread stages 8 elements of every step-th row
    a_chunks, b_chunks = bk // 8, bn // 8
    a_step, b_step = threads // a_chunks, threads // b_chunks
    a_copies, b_copies = bm // a_step, bk // b_step
    tiles_m, tiles_n = wm // 16, wn // 8
    warps_n = bn // wn

    @cuda.jit(fastmath=True)
    def tensorcore_warptiled(A, B, C, alpha, beta):
        m, n, depth = C.shape[0], C.shape[1], A.shape[1]
        thread = cuda.threadIdx.x
        warp, lane = thread // 32, thread % 32
        row0, col0 = cuda.blockIdx.y * bm, cuda.blockIdx.x * bn
        warp_row, warp_col = warp // warps_n * wm, warp % warps_n * wn
        tile_a = shared_address(cuda.shared.array((bm, padded_bk), half, alignment=16))
        tile_b = shared_address(cuda.shared.array((bk, padded_bn), half, alignment=16))
        # What this thread stages: from where, to where, and how many rows and columns are left there
        row_a, col_a = thread // a_chunks, thread % a_chunks * 8
        row_b, col_b = thread // b_chunks, thread % b_chunks * 8
        from_a = global_address(A) + ((row0 + row_a) * depth + col_a) * 2
        from_b = global_address(B) + (row_b * n + col0 + col_b) * 2
        to_a, to_b = tile_a + row_a * a_row + col_a * 2, tile_b + row_b * b_row + col_b * 2
        rows_a, cols_b = int32(m - row0 - row_a), int32(n - col0 - col_b)
        # 16 bytes at a time only where every row of A and B starts at a multiple of 16
        aligned = depth % 8 == 0 and n % 8 == 0 and (global_address(A) | global_address(B)) % 16 == 0
        # ldmatrix: lanes 0 to 15 address rows 0 to 15 of the first 8 columns, lanes 16 to 31 of the next 8
        read_a = tile_a + (warp_row + lane % 16) * a_row + lane // 16 * 16
        read_b = tile_b + (lane % 16) * b_row + 2 * warp_col + lane // 16 * 16
        fa = cuda.local.array((tiles_m, 4), uint32)
        acc = cuda.local.array((tiles_m, tiles_n, 4), float32)
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] = 0
        for k0 in range(0, depth, bk):
            left_a, left_b = int32(depth - k0 - col_a), int32(depth - k0 - row_b)
            if aligned:
                for i in range(a_copies):
                    values = load_global_b32x4_if(from_a + i * a_step * 2 * depth, a_step * i < rows_a and left_a > 0)
                    store_shared_b32x4(to_a + i * a_step * a_row, values)
                for i in range(b_copies):
                    values = load_global_b32x4_if(from_b + i * b_step * 2 * n, b_step * i < left_b and cols_b > 0)
                    store_shared_b32x4(to_b + i * b_step * b_row, values)
            else:
                for i in range(a_copies):
                    for e in range(8):
                        at = from_a + i * a_step * 2 * depth + 2 * e
                        value = load_global_b16_if(at, a_step * i < rows_a and e < left_a)
                        store_shared_b16(to_a + i * a_step * a_row + 2 * e, value)
                for i in range(b_copies):
                    for e in range(8):
                        value = load_global_b16_if(
                            from_b + i * b_step * 2 * n + 2 * e, b_step * i < left_b and e < cols_b
                        )
                        store_shared_b16(to_b + i * b_step * b_row + 2 * e, value)
            from_a += 2 * bk
            from_b += 2 * bk * n
            cuda.syncthreads()
            for k in range(0, bk, 16):
                for i in range(tiles_m):
                    rows = ldmatrix_x4(read_a + 16 * i * a_row + 2 * k)
                    for r in range(4):
                        fa[i, r] = rows[r]
                for j in range(0, tiles_n, 2):
                    fb = ldmatrix_x4_trans(read_b + k * b_row + 16 * j)
                    for i in range(tiles_m):
                        rows = (fa[i, 0], fa[i, 1], fa[i, 2], fa[i, 3])
                        for s in range(2):
                            old = (acc[i, j + s, 0], acc[i, j + s, 1], acc[i, j + s, 2], acc[i, j + s, 3])
                            new = mma_m16n8k16(A, rows, (fb[2 * s], fb[2 * s + 1]), old)
                            for r in range(4):
                                acc[i, j + s, r] = new[r]
            cuda.syncthreads()
        row, col = row0 + warp_row + lane // 4, col0 + warp_col + 2 * (lane % 4)
        write(C, acc, row, col, alpha, beta)

    return tensorcore_warptiled


INFO = KernelInfo(
    name="tensorcore_warptiled",
    title="tensor cores, block tiles in padded shared memory, ldmatrix",
    teaches=(
        "A block stages tiles of A and B in shared memory 16 bytes at a time; each warp takes its fragments with "
        "ldmatrix, four 8 x 8 matrices an instruction, and uses each of them several times. Rows are padded by 16 "
        "bytes, so that the eight rows of a matrix lie in different banks. Rows that do not start at multiples of 16 "
        "bytes (K or N not a multiple of 8) are staged element by element."
    ),
    look_for="LDSM with 4 wavefronts a request and no bank conflicts, HMMA a LDSM, and the wait at the barriers",
    launch=launch,
    build=build,
    tunables=(
        Tunable("bm", (64, 128), 128, "rows of C a block"),
        Tunable("bn", (64, 128), 128, "columns of C a block"),
        Tunable("bk", (16, 32), 32, "depth of a staged tile"),
        Tunable("wm", (32, 64), 64, "rows of C a warp"),
        Tunable("wn", (32, 64), 64, "columns of C a warp"),
    ),
    dtypes=("f16", "bf16"),
)
