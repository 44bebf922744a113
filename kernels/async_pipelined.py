"""warptiled fed by cp.async: tiles travel from global to shared memory on their own, some ahead of the products.

A's tile is stored transposed, which a copy of 16 bytes cannot do: A is copied word by word, from any address. B is
copied 16 bytes at a time, word by word where its rows do not start at multiples of 16 bytes. The other parts are in
`warptile`.
"""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .warptile import BM, BN, LANES_ACROSS, STRIPS, THREADS, TM, TN, WM, WN, parts

BK = 8  # depth of a tile: eight neighbouring words of A fill a sector of 32 bytes
# Lanes 0 to 31 copy 8 words each of 4 rows of A. Rows of tile_a four words longer than BM put the 8 in banks 4 apart,
# and so the 32 in 32 different ones.
PITCH_A = BM + 4
ROWS_A, ROWS_B = THREADS // BK, THREADS // (BN // 4)  # of A, and of B, that a pass of all threads copies
STRIP = WN // STRIPS
PASSES_A, PASSES_B = BM // ROWS_A, BK // ROWS_B


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(stages: int) -> Any:
    from numba import cuda, float32, int32, uint32, uint64

    from .intrinsics import (
        cp_async_ca_4,
        cp_async_cg_16,
        cp_async_commit_group,
        cp_async_wait_group,
        global_address,
        load_shared_f32x4,
        shared_address,
    )

    aligned, _, _, _, _, store = parts(BK)
    ahead, pending, ring = stages - 1, stages - 2, stages * BK

    @cuda.jit(device=True, forceinline=True)
    def copy(row_bytes, at_a, at_b, to_a, to_b, left_a, columns, left_b, fast):
        """Starts the copies of this thread's words of a tile, and moves on; beyond left_a, left_b of K are zeros."""
        size_a = uint32(4 if left_a > 0 else 0)
        for i in range(PASSES_A):
            cp_async_ca_4(uint32(to_a + i * ROWS_A * 4), at_a[i], size_a)
            at_a[i] += uint64(BK * 4)
        for i in range(PASSES_B):
            count = columns if int32(left_b - i * ROWS_B) > 0 else int32(0)
            to = uint32(to_b + i * ROWS_B * BN * 4)
            if fast:  # rows are whole fours
                cp_async_cg_16(to, at_b[i], uint32(16 if count > 0 else 0))
            else:
                for e in range(4):
                    cp_async_ca_4(uint32(to + 4 * e), at_b[i] + uint64(4 * e), uint32(4 if count > e else 0))
            at_b[i] += row_bytes * uint64(BK)
        cp_async_commit_group()

    # Shared memory by addresses: the four words of a lane are at constant distances from one of A and one of B. Of the
    # words for two k, h = 0 and 1, one half is read while the products of the other are computed.
    @cuda.jit(device=True, forceinline=True)
    def read(h, k, read_a, read_b, a, b):
        for i in range(0, TM, 4):
            a[h, i], a[h, i + 1], a[h, i + 2], a[h, i + 3] = load_shared_f32x4(uint32(read_a + (k * PITCH_A + i) * 4))
        for s in range(STRIPS):
            at = uint32(read_b + (k * BN + s * STRIP) * 4)
            b[h, s, 0], b[h, s, 1], b[h, s, 2], b[h, s, 3] = load_shared_f32x4(at)

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def multiply(h, a, b, acc):
        for s in range(STRIPS):
            for i in range(TM):
                for j in range(TN):
                    acc[s, i, j] += a[h, i] * b[h, s, j]

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def pair(k, read_a, read_b, a, b, acc):
        """The products of k and k + 1; the words of k are there, those of k + 2 come."""
        read(1, k + 1, read_a, read_b, a, b)
        multiply(0, a, b, acc)
        read(0, k + 2, read_a, read_b, a, b)
        multiply(1, a, b, acc)

    @cuda.jit(fastmath=True)
    def async_pipelined(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((ring, PITCH_A), float32, 16)  # `stages` tiles, tile_a[k, row]
        tile_b = cuda.shared.array((ring, BN), float32, 16)
        acc = cuda.local.array((STRIPS, TM, TN), float32)
        a, b = cuda.local.array((2, TM), float32), cuda.local.array((2, STRIPS, TN), float32)
        at_a, at_b = cuda.local.array(PASSES_A, uint64), cuda.local.array(PASSES_B, uint64)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        fast = aligned(A, B, C)
        thread = uint32(cuda.threadIdx.x)
        warp, lane = uint32(thread // 32), uint32(thread % 32)
        row_0, col_0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        y = uint32(uint32(warp // (BN // WN) * WM) + uint32(lane // LANES_ACROSS * TM))
        x = uint32(uint32(warp % (BN // WN) * WN) + uint32(lane % LANES_ACROSS * TN))
        # The words that this thread copies; rows of A beyond the last repeat it.
        row_a, k_a = uint32(thread // BK), uint32(thread % BK)
        k_b, col_b = uint32(thread // (BN // 4)), uint32(thread % (BN // 4) * 4)
        for i in range(PASSES_A):
            at = uint32(min(uint32(row_0 + row_a + i * ROWS_A), m - 1) * depth + k_a)
            at_a[i] = global_address(A) + uint64(at) * uint64(4)
        for i in range(PASSES_B):
            at_b[i] = global_address(B) + uint64(uint32((k_b + i * ROWS_B) * n + (col_0 + col_b))) * uint64(4)
        columns = int32(n - uint32(col_0 + col_b))
        left_a, left_b = int32(depth - k_a), int32(depth - k_b)
        row_bytes = uint64(n) * uint64(4)
        words_a, words_b = shared_address(tile_a), shared_address(tile_b)
        to_a, to_b = uint32(words_a + (k_a * PITCH_A + row_a) * 4), uint32(words_b + (k_b * BN + col_b) * 4)
        from_a, from_b = uint32(words_a + y * 4), uint32(words_b + x * 4)
        for s in range(STRIPS):
            for i in range(TM):
                for j in range(TN):
                    acc[s, i, j] = float32(0)
        for tile in range(ahead):
            at = uint32(tile * BK)
            copy(
                row_bytes, at_a, at_b, uint32(to_a + at * (PITCH_A * 4)), uint32(to_b + at * (BN * 4)),
                int32(left_a - tile * BK), columns, int32(left_b - tile * BK), fast,
            )  # fmt: skip
        cp_async_wait_group(pending)
        cuda.syncthreads()
        now, slot = uint32(0), uint32(ahead * BK)  # depth of the tiles to be multiplied, and of those to copy to
        read_a, read_b = from_a, from_b
        read(0, 0, read_a, read_b, a, b)
        for k0 in range(ahead * BK, A.shape[1] + ahead * BK, BK):
            copy(
                row_bytes, at_a, at_b, uint32(to_a + slot * (PITCH_A * 4)), uint32(to_b + slot * (BN * 4)),
                int32(left_a - k0), columns, int32(left_b - k0), fast,
            )  # fmt: skip
            slot = now
            # Rolled: one pair after the other would be fewer instructions, but more than the instruction caches like
            # (on an H200 at 4096, 45.6 TFLOP/s rolled and 44.5 unrolled).
            for k in range(0, BK - 2, 2):
                pair(uint32(k), read_a, read_b, a, b, acc)
            read(1, uint32(BK - 1), read_a, read_b, a, b)
            multiply(0, a, b, acc)
            # The next tile is complete, and no warp still reads this one.
            cp_async_wait_group(pending)
            cuda.syncthreads()
            now = uint32(now + BK) if now != ring - BK else uint32(0)
            read_a, read_b = uint32(from_a + now * (PITCH_A * 4)), uint32(from_b + now * (BN * 4))
            read(0, uint32(0), read_a, read_b, a, b)
            multiply(1, a, b, acc)
        store(C, acc, uint32(row_0 + y), uint32(col_0 + x), fast, alpha, beta)

    return async_pipelined


INFO = KernelInfo(
    name="async_pipelined",
    title="warptiled with cp.async, 2 to 5 tiles in flight",
    teaches=(
        "cp.async writes what it reads from global memory straight to shared memory: no register holds a word on its "
        "way, so that several tiles can be on theirs, and latency is hidden whatever the products of one tile take. "
        "The registers hold instead the shared words of the next k, read during the products of this one, across the "
        "barrier, too. A copy cannot transpose 16 bytes. Word by word it can, from any address, at four times the "
        "instructions for A; A stored by rows, read four k at a time, would need 24 registers more for its words."
    ),
    look_for="LDGSTS in place of LDG and STS; registers against `double_buffered`; long scoreboard stalls by stages",
    launch=launch,
    build=build,
    tunables=(Tunable("stages", (2, 3, 4, 5), 3, "pairs of tiles in shared memory"),),
)
