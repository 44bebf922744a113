"""Tensor cores in the shape of CUTLASS 2.x: cp.async stages ahead, swizzled shared memory, ldmatrix, mma.sync."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .tensorcore_parts import raster, tile_writer
from .tensorcore_ring import multiplier, ring


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    bm, bn = tunables["bm"], tunables["bn"]
    slot = ring(bm, bn, tunables["bk"], tunables["wm"], tunables["wn"])
    return LaunchShape((ceil_div(n, bn), ceil_div(m, bm), 1), (slot.threads, 1, 1), slot.bytes * tunables["stages"])


def build(bm: int, bn: int, bk: int, wm: int, wn: int, stages: int, group: int) -> Any:
    from numba import cuda, float32, uint32, uint64

    shape = ring(bm, bn, bk, wm, wn)
    # Above 256 threads the compiler must know, or a thread has more registers than an SM for so many
    bounds = shape.threads if shape.threads > 256 else None
    tiles_m, tiles_n = wm // 16, wn // 8
    multiply, write = multiplier(shape, stages), tile_writer(tiles_m, tiles_n)
    first = raster(bm, bn, group)

    @cuda.jit(fastmath=True, launch_bounds=bounds)
    def tensorcore_pipelined(A, B, C, alpha, beta):
        acc = cuda.local.array((tiles_m, tiles_n, 4), float32)
        n, depth = uint32(C.shape[1]), uint32(A.shape[1])
        row0, col0 = first()
        multiply(A, B, n, depth, row0, col0, acc)
        warp, lane = uint32(cuda.threadIdx.x // 32), uint32(cuda.threadIdx.x % 32)
        row = uint32(row0 + warp // (bn // wn) * wm + lane // 4)
        col = uint32(col0 + warp % (bn // wn) * wn + lane % 4 * 2)
        write(C, acc, row, col, alpha, beta, uint64(0))

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
        Tunable("bn", (64, 128, 256), 256, "columns of C a block"),
        Tunable("bk", (32, 64), 32, "depth of a staged tile"),
        Tunable("wm", (32, 64), 64, "rows of C a warp"),
        Tunable("wn", (32, 64), 64, "columns of C a warp"),
        Tunable("stages", (2, 3, 4, 5), 4, "tiles in the ring; above 48 KB a launch must allow more shared memory"),
        Tunable("group", (1, 4, 8, 16), 8, "rows of tiles that are worked on together"),
    ),
    dtypes=("f16", "bf16"),
)
