"""Tensor cores in the shape of CUTLASS 2.x: cp.async stages ahead, swizzled shared memory, ldmatrix, mma.sync."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .tensorcore_parts import check_tiling, tile_writer


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    bm, bn, bk, wm, wn = (tunables[name] for name in ("bm", "bn", "bk", "wm", "wn"))
    check_tiling(bm, bn, bk, wm, wn)
    warps = bm // wm * (bn // wn)
    shared_bytes = 2 * bk * (bm + bn) * tunables["stages"]
    return LaunchShape((ceil_div(n, bn), ceil_div(m, bm), 1), (32 * warps, 1, 1), shared_bytes)


def build(bm: int, bn: int, bk: int, wm: int, wn: int, stages: int) -> Any:
    from numba import cuda, float32, int32, uint32
    from numba.cuda import types

    from .intrinsics import (
        cp_async_cg_16,
        cp_async_commit_group,
        cp_async_wait_group,
        global_address,
        ldmatrix_x4,
        ldmatrix_x4_trans,
        load_global_b16_if,
        mma_m16n8k16,
        shared_address,
        store_shared_b16,
    )

    write = tile_writer(wm // 16, wn // 8)
    bits = types.uint16  # shared memory only carries bits: f16 and bf16 alike
    threads = bm // wm * (bn // wn) * 32
    # Rows are not padded: the 16-byte chunks of a row are permuted (XOR with the row's number) so that eight rows of
    # the same column lie in different banks. Rows of A may be shorter than the 128 bytes that the banks hold.
    a_chunks, b_chunks = bk // 8, bn // 8
    a_rows_in_banks = 8 // a_chunks
    # A thread stages a chunk of every step-th row
    a_step, b_step = threads // a_chunks, threads // b_chunks
    a_copies, b_copies = bm // a_step, bk // b_step
    a_bytes, stage_bytes = 2 * bm * bk, 2 * bk * (bm + bn)
    ahead, pending, ring_bytes = stages - 1, stages - 2, stages * stage_bytes
    tiles_m, tiles_n = wm // 16, wn // 8
    warps_n = bn // wn

    @cuda.jit(device=True)
    def stage(from_a, from_b, to_a, to_b, rows_a, cols_a, rows_b, cols_b, depth, n, aligned):
        # Only what lies in the matrices is read, the rest of a tile is zero
        if aligned:
            for i in range(a_copies):
                size = 16 if a_step * i < rows_a and cols_a > 0 else 0
                cp_async_cg_16(to_a + i * a_step * 2 * bk, from_a + i * a_step * 2 * depth, size)
            for i in range(b_copies):
                size = 16 if b_step * i < rows_b and cols_b > 0 else 0
                cp_async_cg_16(to_b + i * b_step * 2 * bn, from_b + i * b_step * 2 * n, size)
        else:
            for i in range(a_copies):
                for e in range(8):
                    at = from_a + i * a_step * 2 * depth + 2 * e
                    value = load_global_b16_if(at, a_step * i < rows_a and e < cols_a)
                    store_shared_b16(to_a + i * a_step * 2 * bk + 2 * e, value)
            for i in range(b_copies):
                for e in range(8):
                    value = load_global_b16_if(from_b + i * b_step * 2 * n + 2 * e, b_step * i < rows_b and e < cols_b)
                    store_shared_b16(to_b + i * b_step * 2 * bn + 2 * e, value)
        cp_async_commit_group()

    @cuda.jit(fastmath=True)
    def tensorcore_pipelined(A, B, C, alpha, beta):
        m, n, depth = C.shape[0], C.shape[1], A.shape[1]
        thread = cuda.threadIdx.x
        warp, lane = thread // 32, thread % 32
        row0, col0 = cuda.blockIdx.y * bm, cuda.blockIdx.x * bn
        warp_row, warp_col = warp // warps_n * wm, warp % warps_n * wn
        ring = shared_address(cuda.shared.array(0, bits))
        # What this thread stages: from where, to where, and how many rows and columns are left there. The rows that it
        # stages are alike in the bits that choose the permutation.
        row_a, chunk_a = thread // a_chunks, thread % a_chunks
        row_b, chunk_b = thread // b_chunks, thread % b_chunks
        from_a = global_address(A) + ((row0 + row_a) * depth + 8 * chunk_a) * 2
        from_b = global_address(B) + (row_b * n + col0 + 8 * chunk_b) * 2
        to_a = ring + row_a * 2 * bk + (chunk_a ^ row_a // a_rows_in_banks % a_chunks) * 16
        to_b = ring + a_bytes + row_b * 2 * bn + (chunk_b ^ row_b % 8) * 16
        rows_a, cols_b = int32(m - row0 - row_a), int32(n - col0 - 8 * chunk_b)
        cols_a, rows_b = int32(depth - 8 * chunk_a), int32(depth - row_b)
        # 16 bytes at a time only where every row of A and B starts at a multiple of 16
        aligned = depth % 8 == 0 and n % 8 == 0 and (global_address(A) | global_address(B)) % 16 == 0
        # ldmatrix: lanes 0 to 15 address rows 0 to 15 of the first 8 columns, lanes 16 to 31 of the next 8
        read_a = ring + (warp_row + lane % 16) * 2 * bk
        read_b = ring + a_bytes + (lane % 16) * 2 * bn
        permuted_a = (lane // 16 ^ lane % 16 // a_rows_in_banks % a_chunks) * 16
        permuted_b = (warp_col // 8 + lane // 16 ^ lane % 8) * 16
        fa = cuda.local.array((tiles_m, 4), uint32)
        acc = cuda.local.array((tiles_m, tiles_n, 4), float32)
        for i in range(tiles_m):
            for j in range(tiles_n):
                for r in range(4):
                    acc[i, j, r] = 0
        slot = 0  # of the ring, in bytes, to stage into
        for _ in range(ahead):
            stage(from_a, from_b, to_a + slot, to_b + slot, rows_a, cols_a, rows_b, cols_b, depth, n, aligned)
            from_a, from_b, cols_a, rows_b = from_a + 2 * bk, from_b + 2 * bk * n, cols_a - bk, rows_b - bk
            slot += stage_bytes
        now = 0  # the slot to compute from
        for _ in range(0, depth, bk):
            cp_async_wait_group(pending)
            cuda.syncthreads()  # all copies of slot `now` have arrived, and no warp still reads the one before it
            stage(from_a, from_b, to_a + slot, to_b + slot, rows_a, cols_a, rows_b, cols_b, depth, n, aligned)
            from_a, from_b, cols_a, rows_b = from_a + 2 * bk, from_b + 2 * bk * n, cols_a - bk, rows_b - bk
            slot = slot + stage_bytes if slot + stage_bytes < ring_bytes else 0
            for k in range(0, bk, 16):
                for i in range(tiles_m):
                    rows = ldmatrix_x4(read_a + now + 16 * i * 2 * bk + (permuted_a ^ 2 * k))
                    for r in range(4):
                        fa[i, r] = rows[r]
                for j in range(0, tiles_n, 2):
                    fb = ldmatrix_x4_trans(read_b + now + k * 2 * bn + (permuted_b ^ 16 * j))
                    for i in range(tiles_m):
                        rows = (fa[i, 0], fa[i, 1], fa[i, 2], fa[i, 3])
                        for s in range(2):
                            old = (acc[i, j + s, 0], acc[i, j + s, 1], acc[i, j + s, 2], acc[i, j + s, 3])
                            new = mma_m16n8k16(A, rows, (fb[2 * s], fb[2 * s + 1]), old)
                            for r in range(4):
                                acc[i, j + s, r] = new[r]
            now = now + stage_bytes if now + stage_bytes < ring_bytes else 0
        row, col = row0 + warp_row + lane // 4, col0 + warp_col + 2 * (lane % 4)
        write(C, acc, row, col, alpha, beta)

    return tensorcore_pipelined


INFO = KernelInfo(
    name="tensorcore_pipelined",
    title="tensor cores fed by cp.async, several stages ahead",
    teaches=(
        "Copies from global to shared memory run on their own, past L1 and the registers, some K tiles ahead of the "
        "tensor cores: their latency hides behind the products of earlier tiles, and one barrier a tile is enough. The "
        "tiles are swizzled, so that neither the copies nor ldmatrix conflict and no byte is lost to padding. Rows "
        "that do not start at multiples of 16 bytes (K or N not a multiple of 8) are staged element by element."
    ),
    look_for="LDGSTS without bank conflicts, HMMA's share of the issue slots, shared memory as what limits occupancy",
    launch=launch,
    build=build,
    tunables=(
        Tunable("bm", (64, 128, 256), 128, "rows of C a block"),
        Tunable("bn", (64, 128, 256), 128, "columns of C a block"),
        Tunable("bk", (16, 32, 64), 32, "depth of a staged tile"),
        Tunable("wm", (32, 64), 64, "rows of C a warp"),
        Tunable("wn", (32, 64), 64, "columns of C a warp"),
        Tunable("stages", (2, 3, 4, 5), 3, "tiles in the ring; above 48 KB a launch must allow more shared memory"),
    ),
    dtypes=("f16", "bf16"),
)
