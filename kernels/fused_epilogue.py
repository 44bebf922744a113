"""warptiled whose epilogue does what a network's layer does next: C = max(0, alpha A B + beta C + bias).

Global memory is accessed 16 bytes at a time, word by word where rows do not start at multiples of 16 bytes. The parts
up to the epilogue are in `warptile`.
"""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .warptile import BM, BN, LANES_ACROSS, STRIPS, THREADS, TM, TN, WM, WN, parts

STRIP = WN // STRIPS


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    from numba import cuda, float32, int32, uint32, uint64

    from .four_words import access
    from .intrinsics import global_address, store_global_f32_if, store_global_f32x4

    aligned, place, fetch, stage, products, _ = parts(bk)
    _, load, _, _ = access()
    fours = BM * bk // 4 // THREADS

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def finished(acc, old, bias, alpha, beta):
        value = alpha * acc + bias
        if beta != 0:
            value += beta * old
        return max(value, float32(0))

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def store_strip(s, C, acc, row, col, fast, alpha, beta, bias):
        m, n = uint32(C.shape[0]), uint32(C.shape[1])
        left = int32(n - col)
        b0, b1, b2, b3 = load(bias, col, left, fast)  # a lane's columns are the same in all its rows
        for i in range(TM):
            count = left if uint32(row + i) < m else int32(0)
            at = uint32((row + i) * n + col)
            # BLAS: where beta is 0, C is not read and may hold anything
            c0, c1, c2, c3 = load(C, at, count if beta != 0 else int32(0), fast)
            w = finished(acc[s, i, 0], c0, b0, alpha, beta)
            x = finished(acc[s, i, 1], c1, b1, alpha, beta)
            y = finished(acc[s, i, 2], c2, b2, alpha, beta)
            z = finished(acc[s, i, 3], c3, b3, alpha, beta)
            to = global_address(C) + uint64(at) * uint64(4)
            if fast:
                if count > 0:
                    store_global_f32x4(to, (w, x, y, z))
            else:
                store_global_f32_if(to, w, uint32(count > 0))
                store_global_f32_if(to + uint64(4), x, uint32(count > 1))
                store_global_f32_if(to + uint64(8), y, uint32(count > 2))
                store_global_f32_if(to + uint64(12), z, uint32(count > 3))

    @cuda.jit(fastmath=True)
    def fused_epilogue(A, B, C, alpha, beta, bias):
        tile_a = cuda.shared.array((bk, BM), float32, 16)  # tile_a[k, row]
        tile_b = cuda.shared.array((bk, BN), float32, 16)
        acc = cuda.local.array((STRIPS, TM, TN), float32)
        words_a, words_b = cuda.local.array((fours, 4), float32), cuda.local.array((fours, 4), float32)
        at_a, at_b = cuda.local.array(fours, uint32), cuda.local.array(fours, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        fast = aligned(A, B, C) and global_address(bias) & uint64(15) == uint64(0)
        thread = uint32(cuda.threadIdx.x)
        warp, lane = uint32(thread // 32), uint32(thread % 32)
        row_0, col_0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        y = uint32(uint32(warp // (BN // WN) * WM) + uint32(lane // LANES_ACROSS * TM))
        x = uint32(uint32(warp % (BN // WN) * WN) + uint32(lane % LANES_ACROSS * TN))
        for s in range(STRIPS):
            for i in range(TM):
                for j in range(TN):
                    acc[s, i, j] = float32(0)
        place(thread, row_0, col_0, uint32(0), m, n, depth, at_a, at_b)
        for k0 in range(0, A.shape[1], bk):
            fetch(A, B, thread, int32(n - col_0), int32(depth - k0), fast, at_a, at_b, words_a, words_b)
            stage(thread, uint32(0), words_a, words_b, tile_a, tile_b)
            cuda.syncthreads()
            products(uint32(0), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        row, col = uint32(row_0 + y), uint32(col_0 + x)
        # Not a loop: see `warptile`
        store_strip(0, C, acc, row, col, fast, alpha, beta, bias)
        store_strip(1, C, acc, row, uint32(col + STRIP), fast, alpha, beta, bias)
        store_strip(2, C, acc, row, uint32(col + 2 * STRIP), fast, alpha, beta, bias)
        store_strip(3, C, acc, row, uint32(col + 3 * STRIP), fast, alpha, beta, bias)

    return fused_epilogue


INFO = KernelInfo(
    name="fused_epilogue",
    title="warptiled, with bias and ReLU before C is stored",
    teaches=(
        "A kernel of its own for bias and ReLU would read all of C and write it again, at the speed of DRAM. In the "
        "epilogue the elements are in registers: 16 words of the bias a thread, an addition and a maximum an element, "
        "and not a byte of C more than `warptiled` moves."
    ),
    look_for="time and DRAM sectors against `warptiled`: the same; FMNMX, one an element of C",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (8, 16), 16, "depth of the shared tiles"),),
    arguments=("A", "B", "C", "alpha", "beta", "bias"),
    relu=True,
)
