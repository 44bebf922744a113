"""float64 on tensor cores: mma.sync m8n8k4, a 32 x 32 tile of C a warp."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div

BM, BN = 64, 64  # tile of C a block
WM, WN = 32, 32  # a warp
THREADS = 32 * (BM // WM) * (BN // WN)
TILES_M, TILES_N = WM // 8, WN // 8


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    from numba import cuda, float64, uint32

    from .intrinsics import mma_m8n8k4_f64

    padded_a, padded_b = bk + 4, BN + 4  # 16 lanes read 4 rows, 4 doubles of each: all in different banks

    @cuda.jit(fastmath=True)
    def dgemm_tensorcore(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BM, padded_a), float64)
        tile_b = cuda.shared.array((bk, padded_b), float64)
        acc, fa = cuda.local.array((TILES_M, TILES_N, 2), float64), cuda.local.array(TILES_M, float64)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        thread = uint32(cuda.threadIdx.x)
        row0, col0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        warp, g, t = uint32(thread // 32), uint32(thread % 32 // 4), uint32(thread % 4)
        y, x = uint32(warp // (BN // WN) * WM + g), uint32(warp % (BN // WN) * WN)
        for i in range(TILES_M):
            for j in range(TILES_N):
                for r in range(2):
                    acc[i, j, r] = 0.0
        for k0 in range(uint32(0), depth, bk):
            for i in range(thread, uint32(BM * bk), THREADS):
                row, k = uint32(i // bk), uint32(i % bk)
                inside = uint32(row0 + row) < m and uint32(k0 + k) < depth
                tile_a[row, k] = A[uint32(row0 + row), uint32(k0 + k)] if inside else 0.0
            for i in range(thread, uint32(BN * bk), THREADS):
                k, col = uint32(i // BN), uint32(i % BN)
                inside = uint32(k0 + k) < depth and uint32(col0 + col) < n
                tile_b[k, col] = B[uint32(k0 + k), uint32(col0 + col)] if inside else 0.0
            cuda.syncthreads()
            for k in range(0, bk, 4):
                for i in range(TILES_M):
                    fa[i] = tile_a[uint32(y + 8 * i), uint32(k + t)]
                for j in range(TILES_N):
                    b = (tile_b[uint32(k + t), uint32(x + g + 8 * j)],)
                    for i in range(TILES_M):
                        new = mma_m8n8k4_f64((fa[i],), b, (acc[i, j, 0], acc[i, j, 1]))
                        acc[i, j, 0], acc[i, j, 1] = new[0], new[1]
            cuda.syncthreads()
        for i in range(TILES_M):
            for j in range(TILES_N):
                for r in range(2):
                    row, col = uint32(row0 + y + 8 * i), uint32(col0 + x + 8 * j + 2 * t + r)
                    if row < m and col < n:
                        value = alpha * acc[i, j, r]
                        if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                            value += beta * C[row, col]
                        C[row, col] = value

    return dgemm_tensorcore


INFO = KernelInfo(
    name="dgemm_tensorcore",
    title="float64 on tensor cores",
    teaches=(
        "DMMA multiplies 8 x 4 by 4 x 8 doubles, 256 products a warp, 8 DFMA's worth, at float64's full precision. On "
        "data centre chips that doubles the peak; others carry it out at the pace of their few float64 units."
    ),
    look_for="DMMA and LDS.64 in the instruction mix, fp64 tensor pipe utilisation on h200 and on rtx4090",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (8, 16), 16, "depth of the shared tiles"),),
    dtypes=("f64",),
)
