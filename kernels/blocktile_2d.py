"""A thread computes TM x TN elements of C as outer products: TM + TN words of shared memory serve TM * TN products."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    bm, bn, tm, tn = (tunables[name] for name in ("bm", "bn", "tm", "tn"))
    return LaunchShape(grid=(ceil_div(n, bn), ceil_div(m, bm), 1), block=((bm // tm) * (bn // tn), 1, 1))


def build(bm: int, bn: int, bk: int, tm: int, tn: int) -> Any:
    global cuda  # a global, as in any numba script: the CUDA simulator replaces it there
    from numba import cuda, float32, uint32

    from .unroll import unrolled

    across = bn // tn  # threads side by side
    threads = (bm // tm) * across
    loads_a, loads_b = bm * bk // threads, bk * bn // threads  # words that a thread stages

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def outer_product(k, tile_a, tile_b, y, x, acc):
        a = cuda.local.array(tm, float32)
        b = cuda.local.array(tn, float32)
        for i in range(tm):
            a[i] = tile_a[y + i, k]
        for j in range(tn):
            b[j] = tile_b[k, x + j]
        for i in range(tm):
            for j in range(tn):
                acc[i, j] += a[i] * b[j]

    four_products = unrolled(outer_product, 4)

    # 8 x 8 sums need about 128 registers; one more than that would leave room for half as many blocks of 256 threads.
    @cuda.jit(fastmath=True, max_registers=128 if (threads, tm * tn) == (256, 64) else None)
    def blocktile_2d(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((bm, bk), float32, 16)
        tile_b = cuda.shared.array((bk, bn), float32, 16)  # aligned to 16 bytes, so that four words are one read
        acc = cuda.local.array((tm, tn), float32)
        at_a = cuda.local.array(loads_a, uint32)
        at_b = cuda.local.array(loads_b, uint32)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        thread = uint32(cuda.threadIdx.x)
        row_0, col_0 = uint32(cuda.blockIdx.y * bm), uint32(cuda.blockIdx.x * bn)
        # The words that this thread stages; rows and columns outside the matrices repeat the last one.
        row_a, k_a = uint32(thread // bk), uint32(thread % bk)
        k_b, col_b = uint32(thread // bn), uint32(thread % bn)
        for i in range(loads_a):
            at_a[i] = min(uint32(row_0 + row_a) + i * threads // bk, m - 1) * depth + k_a
        for i in range(loads_b):
            at_b[i] = (k_b + i * threads // bn) * n + min(uint32(col_0 + col_b) + i * threads % bn, n - 1)
        # The tile of C that it computes.
        y, x = uint32(thread // across * tm), uint32(thread % across * tn)
        for i in range(tm):
            for j in range(tn):
                acc[i, j] = float32(0)
        for k0 in range(0, A.shape[1], bk):
            left = uint32(depth - k0)
            for i in range(loads_a):
                tile_a[row_a + i * threads // bk, k_a] = A.flat[at_a[i]] if k_a < left else float32(0)
                at_a[i] += uint32(bk)
            for i in range(loads_b):
                k = uint32(k_b + i * threads // bn)
                tile_b[k, col_b + i * threads % bn] = B.flat[at_b[i]] if k < left else float32(0)
                at_b[i] += uint32(bk * n)
            cuda.syncthreads()
            for k1 in range(0, bk, 4):
                four_products(uint32(k1), tile_a, tile_b, y, x, acc)
            cuda.syncthreads()
        row, col = uint32(row_0 + y), uint32(col_0 + x)
        for i in range(tm):
            for j in range(tn):
                if uint32(row + i) < m and uint32(col + j) < n:
                    at_c = uint32((row + i) * n + (col + j))
                    value = alpha * acc[i, j]
                    if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                        value += beta * C.flat[at_c]
                    C.flat[at_c] = value

    return blocktile_2d


INFO = KernelInfo(
    name="blocktile_2d",
    title="a tile of C a block, a smaller tile a thread",
    teaches=(
        "An outer product of 8 words of A and 8 of B is 64 products for 16 words of shared memory: arithmetic, not "
        "shared memory, can now be the limit. The price is registers: 64 sums a thread, so that fewer warps fit on an "
        "SM. With TM = TN = 16 the 256 sums do not fit in 255 registers, and spill to local memory."
    ),
    look_for=(
        "FFMA as a share of all instructions; registers and occupancy; neighbouring threads' words of B are 8 apart, "
        "hence bank conflicts; with tm=16 tn=16 the LDL and STL of the spills"
    ),
    launch=launch,
    build=build,
    tunables=(
        Tunable("bm", (64, 128), 128, "rows of C a block"),
        Tunable("bn", (64, 128), 128, "columns of C a block"),
        Tunable("bk", (8, 16), 8, "depth of the shared tiles"),
        Tunable("tm", (4, 8, 16), 8, "rows of C a thread"),
        Tunable("tn", (4, 8, 16), 8, "columns of C a thread"),
    ),
)
