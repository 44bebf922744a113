"""Tensor cores fed from shared memory: block tiles of A and B, padded rows, ldmatrix, and a tile of C a warp."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .tensorcore_parts import tile_writer
from .tensorcore_staged import multiplier, pair_of_tiles


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    bm, bn = tunables["bm"], tunables["bn"]
    shape = pair_of_tiles(**tunables)
    return LaunchShape((ceil_div(n, bn), ceil_div(m, bm), 1), (shape.threads, 1, 1), shape.bytes)


def build(bm: int, bn: int, bk: int, wm: int, wn: int) -> Any:
    from numba import cuda, float32, uint32, uint64

    shape = pair_of_tiles(bm, bn, bk, wm, wn)
    # Above 256 threads the compiler must know, or a thread has more registers than an SM for so many
    bounds = shape.threads if shape.threads > 256 else None
    tiles_m, tiles_n, warps_n = wm // 16, wn // 8, bn // wn
    multiply, write = multiplier(shape, 1), tile_writer(tiles_m, tiles_n)

    @cuda.jit(fastmath=True, launch_bounds=bounds)
    def tensorcore_warptiled(A, B, C, alpha, beta):
        acc = cuda.local.array((tiles_m, tiles_n, 4), float32)
        row0, col0 = uint32(cuda.blockIdx.y * bm), uint32(cuda.blockIdx.x * bn)
        multiply(A, B, uint32(C.shape[1]), uint32(A.shape[1]), row0, col0, acc)
        warp, lane = uint32(cuda.threadIdx.x // 32), uint32(cuda.threadIdx.x % 32)
        row, col = row0 + warp // warps_n * wm + lane // 4, col0 + warp % warps_n * wn + lane % 4 * 2
        write(C, acc, uint32(row), uint32(col), alpha, beta, uint64(0))

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
        Tunable("bm", (64, 128, 256), 128, "rows of C a block"),
        Tunable("bn", (64, 128, 256), 256, "columns of C a block"),
        Tunable("bk", (16, 32, 64), 32, "depth of a staged tile"),
        Tunable("wm", (32, 64), 64, "rows of C a warp"),
        Tunable("wn", (32, 64), 64, "columns of C a warp"),
    ),
    dtypes=("f16", "bf16"),
)
