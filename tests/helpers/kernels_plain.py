"""Plain kernels: C = A @ B and nothing else, square matrices, the form that was measured on a real GPU.

`naive` and `coalesced` check bounds, `tiled` needs n to be a multiple of the tile. The measured kernels' sources were
not kept, only what they do. Of the ways to write that (grid(2) or blockIdx * tile, the K loop by step or by quotient,
which shape bounds it) the one here is that whose registers and instruction total equal the measured ones (`MEASURED`):
these two were chosen to agree. Requests, sectors and wavefronts were not; they depend on what the kernel does alone.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import cuda, float32


def naive(A, B, C):
    row, col = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc


def coalesced(A, B, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc


def tiled(tile: int) -> Callable:
    def tiled(A, B, C):
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, tile), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        row = cuda.blockIdx.y * tile + ty
        col = cuda.blockIdx.x * tile + tx
        acc = float32(0)
        for k0 in range(0, A.shape[1], tile):
            tile_a[ty, tx] = A[row, k0 + tx]
            tile_b[ty, tx] = B[k0 + ty, col]
            cuda.syncthreads()
            for k in range(tile):
                acc += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        C[row, col] = acc

    return tiled


# name -> (function, block edge); the grid is n / edge in x and y
PLAIN: dict[str, tuple[Callable, int]] = {
    "naive32": (naive, 32),
    "coal32": (coalesced, 32),
    "coal16": (coalesced, 16),
    "tiled16": (tiled(16), 16),
    "tiled32": (tiled(32), 32),
}

# On an H200, numba 0.68.0 and numba-cuda 0.30.4: name -> (registers a thread, smsp__inst_executed.sum at n = 1024)
MEASURED = {
    "naive32": (28, 1_211_301_888),
    "coal32": (28, 1_211_301_888),
    "coal16": (28, 1_211_301_888),
    "tiled16": (32, 168_853_504),
    "tiled32": (32, 123_764_736),
}
