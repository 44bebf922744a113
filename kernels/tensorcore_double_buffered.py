"""tensorcore_warptiled with two pairs of shared tiles: the next one is loaded while this one is used."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, LaunchShape, Tunable, ceil_div
from .tensorcore_parts import tile_writer
from .tensorcore_staged import multiplier, pair_of_tiles


def launch(m: int, n: int, k: int, tunables: dict[str, int]) -> LaunchShape:
    bm, bn = tunables["bm"], tunables["bn"]
    shape = pair_of_tiles(**tunables)
    return LaunchShape((ceil_div(n, bn), ceil_div(m, bm), 1), (shape.threads, 1, 1), 2 * shape.bytes)


def build(bm: int, bn: int, bk: int, wm: int, wn: int) -> Any:
    from numba import cuda, float32, uint32, uint64

    shape = pair_of_tiles(bm, bn, bk, wm, wn)
    # Above 256 threads the compiler must know, or a thread has more registers than an SM for so many
    bounds = shape.threads if shape.threads > 256 else None
    tiles_m, tiles_n, warps_n = wm // 16, wn // 8, bn // wn
    multiply, write = multiplier(shape, 2), tile_writer(tiles_m, tiles_n)

    @cuda.jit(fastmath=True, launch_bounds=bounds)
    def tensorcore_double_buffered(A, B, C, alpha, beta):
        acc = cuda.local.array((tiles_m, tiles_n, 4), float32)
        row0, col0 = uint32(cuda.blockIdx.y * bm), uint32(cuda.blockIdx.x * bn)
        multiply(A, B, uint32(C.shape[1]), uint32(A.shape[1]), row0, col0, acc)
        warp, lane = uint32(cuda.threadIdx.x // 32), uint32(cuda.threadIdx.x % 32)
        row, col = row0 + warp // warps_n * wm + lane // 4, col0 + warp % warps_n * wn + lane % 4 * 2
        write(C, acc, uint32(row), uint32(col), alpha, beta, uint64(0))

    return tensorcore_double_buffered


INFO = KernelInfo(
    name="tensorcore_double_buffered",
    title="tensor cores, two pairs of shared tiles",
    teaches=(
        "While the tensor cores work on one pair of tiles, the next is on its way: loaded into registers before the "
        "products, stored into the other pair after them. One barrier a tile instead of two, and the latency of global "
        "memory hides behind the products; it costs twice the shared memory, and registers to wait in. bk=16 with "
        "wn=32 is the shape of published examples, 256 x 128 x 16 with 16 warps: half of the products of a barrier."
    ),
    look_for="long_scoreboard and barrier stalls against tensorcore_warptiled's; registers and shared memory a block",
    launch=launch,
    build=build,
    tunables=(
        Tunable("bm", (64, 128, 256), 256, "rows of C a block"),
        Tunable("bn", (64, 128, 256), 128, "columns of C a block"),
        Tunable("bk", (16, 32), 32, "depth of a staged tile"),
        Tunable("wm", (32, 64), 64, "rows of C a warp"),
        Tunable("wn", (32, 64), 64, "columns of C a warp"),
    ),
    dtypes=("f16", "bf16"),
)
