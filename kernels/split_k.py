"""warptiled with K split over blocks: several blocks compute parts of the sums of one tile of C.

They meet in a workspace, each with its own sheet of it or all adding to one atomically. A counter a tile tells a block
that it is the last to arrive: it adds the sheets up and writes alpha times the sum, plus beta C, to C. No block waits
for another, so that they may run in any order, and one launch does it all. The counters, and the workspace that is
added to, must be zero at the launch and are left zero. Global memory is accessed 16 bytes at a time, word by word where
rows do not start at multiples of 16 bytes. The parts are in `warptile`.
"""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .warptile import BM, BN, LANES_ACROSS, STRIPS, THREADS, TM, TN, WM, WN, parts

BK = 8  # depth of the shared tiles
BOTH = 2 * BK  # of two
STRIP = WN // STRIPS


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), tunables["splits"]), block=(THREADS, 1, 1))


def zeros(m: int, n: int, k: int, tunables: dict[str, int]) -> dict[str, tuple[str, tuple[int, ...]]]:
    sheets = 1 if tunables["atomics"] else tunables["splits"]
    counters = (ceil_div(m, BM), ceil_div(n, BN), 32)  # each in a line of 128 bytes of its own
    return {"workspace": ("f32", (sheets, m, n)), "counters": ("i32", counters)}


def build(splits: int, atomics: int) -> Any:
    from numba import cuda, float32, int32, uint32, uint64

    from .four_words import access
    from .intrinsics import global_address, load_global_f32x4, red_add_global_f32_if, store_global_f32x4

    aligned, place, fetch, stage, products, store = parts(BK)
    _, load, store_four, store_one = access()
    fours = BM * BK // 4 // THREADS
    sheets = 1 if atomics else splits

    @cuda.jit(device=True, forceinline=True)
    def add_strip(s, sheet, acc, row, col):
        m, n = uint32(sheet.shape[0]), uint32(sheet.shape[1])
        for i in range(TM):
            to = global_address(sheet) + uint64(uint32((row + i) * n + col)) * uint64(4)
            for j in range(TN):
                inside = uint32(row + i) < m and uint32(col + j) < n
                red_add_global_f32_if(to + uint64(4 * j), acc[s, i, j], uint32(inside))

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def sum_of_four(workspace, at, sheet_words, count, fast):
        """Four neighbouring words, summed over the sheets in order."""
        w, x, y, z = float32(0), float32(0), float32(0), float32(0)
        if fast:
            for _ in range(sheets):
                s0, s1, s2, s3 = load_global_f32x4(global_address(workspace) + at * uint64(4))
                w, x, y, z = w + s0, x + s1, y + s2, z + s3
                at += sheet_words
        else:
            for _ in range(sheets):
                s0, s1, s2, s3 = load(workspace, at, count, False)
                w, x, y, z = w + s0, x + s1, y + s2, z + s3
                at += sheet_words
        return w, x, y, z

    @cuda.jit(device=True, forceinline=True)
    def clear_four(workspace, at, count, fast):
        zero = float32(0)
        if fast:
            store_global_f32x4(global_address(workspace) + at * uint64(4), (zero, zero, zero, zero))
        else:
            for e in range(4):
                store_one(workspace, at + uint64(e), count > e, zero, zero, zero)

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def finish(workspace, C, thread, row_0, col_0, fast, alpha, beta):
        """C = alpha times the sum of the sheets + beta C, a row of the tile a warp at a time."""
        m, n = uint32(C.shape[0]), uint32(C.shape[1])
        col = uint32(col_0 + thread % (BN // 4) * 4)
        count = int32(n - col)
        for row in range(row_0 + thread // (BN // 4), min(row_0 + BM, m), THREADS // (BN // 4)):
            if count > 0:
                at = uint32(uint32(row) * n + col)
                w, x, y, z = sum_of_four(workspace, uint64(at), uint64(m) * uint64(n), count, fast)
                if atomics:
                    clear_four(workspace, uint64(at), count, fast)
                if fast:
                    store_four(C, at, alpha, beta, w, x, y, z)
                else:
                    store_one(C, at, count > 0, alpha, beta, w)
                    store_one(C, uint32(at + 1), count > 1, alpha, beta, x)
                    store_one(C, uint32(at + 2), count > 2, alpha, beta, y)
                    store_one(C, uint32(at + 3), count > 3, alpha, beta, z)

    @cuda.jit(fastmath=True)
    def split_k(A, B, C, alpha, beta, workspace, counters):
        tile_a = cuda.shared.array((BOTH, BM), float32, 16)  # two tiles, as in double_buffered
        tile_b = cuda.shared.array((BOTH, BN), float32, 16)
        arrived = cuda.shared.array(1, int32)
        acc = cuda.local.array((STRIPS, TM, TN), float32)
        words_a, words_b = cuda.local.array((fours, 4), float32), cuda.local.array((fours, 4), float32)
        at_a, at_b = cuda.local.array(fours, uint32), cuda.local.array(fours, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        fast = aligned(A, B, C) and global_address(workspace) & uint64(15) == uint64(0)
        thread = uint32(cuda.threadIdx.x)
        warp, lane = uint32(thread // 32), uint32(thread % 32)
        row_0, col_0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        y = uint32(uint32(warp // (BN // WN) * WM) + uint32(lane // LANES_ACROSS * TM))
        x = uint32(uint32(warp % (BN // WN) * WN) + uint32(lane % LANES_ACROSS * TN))
        # The part of K from begin to end: whole tiles, the same number for each block but the last ones.
        tiles = (depth + (splits * BK - 1)) // (splits * BK)
        begin = int32(min(uint32(cuda.blockIdx.z * tiles * BK), depth))
        end = int32(min(uint32(begin + tiles * BK), depth))
        for s in range(STRIPS):
            for i in range(TM):
                for j in range(TN):
                    acc[s, i, j] = float32(0)
        place(thread, row_0, col_0, uint32(begin), m, n, depth, at_a, at_b)
        fetch(A, B, thread, int32(n - col_0), int32(end - begin), fast, at_a, at_b, words_a, words_b)
        stage(thread, uint32(0), words_a, words_b, tile_a, tile_b)
        cuda.syncthreads()
        now = uint32(0)  # depth of the tiles to be multiplied
        for k0 in range(begin + BK, end + BK, BK):
            fetch(A, B, thread, int32(n - col_0), int32(end - k0), fast, at_a, at_b, words_a, words_b)
            products(now, tile_a, tile_b, y, x, acc)
            now = uint32(BK - now)
            stage(thread, now, words_a, words_b, tile_a, tile_b)
            cuda.syncthreads()
        row, col = uint32(row_0 + y), uint32(col_0 + x)
        if atomics:
            add_strip(0, workspace[0], acc, row, col)
            add_strip(1, workspace[0], acc, row, uint32(col + STRIP))
            add_strip(2, workspace[0], acc, row, uint32(col + 2 * STRIP))
            add_strip(3, workspace[0], acc, row, uint32(col + 3 * STRIP))
        else:
            store(workspace[cuda.blockIdx.z], acc, row, col, fast, float32(1), float32(0))
        # The block's words before its arrival; after it, if it is the last, the words of the others.
        cuda.threadfence()
        cuda.syncthreads()
        if thread == 0:
            arrived[0] = cuda.atomic.add(counters, (cuda.blockIdx.y, cuda.blockIdx.x, 0), 1)
        cuda.syncthreads()
        if arrived[0] == splits - 1:
            cuda.threadfence()
            if thread == 0:
                counters[cuda.blockIdx.y, cuda.blockIdx.x, 0] = 0
            finish(workspace, C, thread, row_0, col_0, fast, alpha, beta)

    return split_k


INFO = KernelInfo(
    name="split_k",
    title="K split over blocks, whose sums the last of them collects",
    teaches=(
        "A C of few tiles keeps few SMs busy, however long K is. Split K, and as many times more blocks work; the "
        "price is a workspace that is written and read, once a split, and an order of arrival: which block is the last "
        "is known only when it is there. Sheets of their own give the same sum in every run; atomic additions need one "
        "sheet only, in whatever order they come."
    ),
    look_for=(
        "time at M = N = 256, K = 16384 by splits, against `double_buffered`; waves per SM; sectors of the workspace; "
        "RED with atomics=1"
    ),
    launch=launch,
    build=build,
    tunables=(
        Tunable("splits", (2, 4, 8, 16), 4, "blocks that share the K of a tile"),
        Tunable("atomics", (0, 1), 0, "1: all add to one sheet of the workspace, 0: each has its own"),
    ),
    arguments=("A", "B", "C", "alpha", "beta", "workspace", "counters"),
    zeros=zeros,
)
