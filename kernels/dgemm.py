"""float64 without tensor cores: blocktile_2d with 4 x 4 elements of C a thread."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div

BM, BN, TM, TN = 64, 64, 4, 4  # tile of C a block, elements a thread
ACROSS, DOWN = BN // TN, BM // TM  # threads
THREADS = ACROSS * DOWN


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    return LaunchShape(grid=(ceil_div(n, BN), ceil_div(m, BM), 1), block=(THREADS, 1, 1))


def build(bk: int) -> Any:
    from numba import cuda, float64, uint32

    padded_a = bk + 1

    @cuda.jit(fastmath=True)
    def dgemm(A, B, C, alpha, beta):
        tile_a = cuda.shared.array((BM, padded_a), float64)
        tile_b = cuda.shared.array((bk, BN), float64)
        acc, b = cuda.local.array((TM, TN), float64), cuda.local.array(TN, float64)
        m, n, depth = uint32(C.shape[0]), uint32(C.shape[1]), uint32(A.shape[1])
        thread = uint32(cuda.threadIdx.x)
        row0, col0 = uint32(cuda.blockIdx.y * BM), uint32(cuda.blockIdx.x * BN)
        y, x = uint32(thread // ACROSS), uint32(thread % ACROSS)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0.0
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
            for k in range(bk):
                for j in range(TN):
                    b[j] = tile_b[uint32(k), uint32(x + j * ACROSS)]
                for i in range(TM):
                    a = tile_a[uint32(y + i * DOWN), uint32(k)]
                    for j in range(TN):
                        acc[i, j] += a * b[j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                row, col = uint32(row0 + y + i * DOWN), uint32(col0 + x + j * ACROSS)
                if row < m and col < n:
                    value = alpha * acc[i, j]
                    if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
                        value += beta * C[row, col]
                    C[row, col] = value

    return dgemm


INFO = KernelInfo(
    name="dgemm",
    title="float64, 4 x 4 elements of C a thread",
    teaches=(
        "The same tiles with elements of 8 bytes: twice the shared memory and registers for a tile, two wavefronts for "
        "a row of a warp. Whether the products or the memory limit it depends on the GPU: data centre chips do half as "
        "many DFMA as FFMA a cycle, others a 64th."
    ),
    look_for="fp64 pipe utilisation on h200 and on rtx4090, LDS.64 with two wavefronts a request",
    launch=launch,
    build=build,
    tunables=(Tunable("bk", (8, 16), 16, "depth of the shared tiles"),),
    dtypes=("f64",),
)
