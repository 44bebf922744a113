"""tensorcore_pipelined with a bias for each column and ReLU in its epilogue: C = max(0, alpha A B + beta C + bias)."""

from __future__ import annotations

from typing import Any

from .info import KernelInfo, Tunable
from .tensorcore_parts import raster, tile_writer
from .tensorcore_pipelined import launch
from .tensorcore_ring import multiplier, ring


def build(bm: int, bn: int, bk: int, wm: int, wn: int, stages: int, group: int) -> Any:
    from numba import cuda, float32, uint32

    from .intrinsics import global_address

    shape = ring(bm, bn, bk, wm, wn)
    # Above 256 threads the compiler must know, or a thread has more registers than an SM for so many
    bounds = shape.threads if shape.threads > 256 else None
    tiles_m, tiles_n, warps_n = wm // 16, wn // 8, bn // wn
    multiply = multiplier(shape, stages)
    write = tile_writer(tiles_m, tiles_n, biased=True, relu=True)
    first = raster(bm, bn, group)

    @cuda.jit(fastmath=True, launch_bounds=bounds)
    def tensorcore_fused_epilogue(A, B, C, alpha, beta, bias):
        acc = cuda.local.array((tiles_m, tiles_n, 4), float32)
        row0, col0 = first()
        multiply(A, B, uint32(C.shape[1]), uint32(A.shape[1]), row0, col0, acc)
        warp, lane = uint32(cuda.threadIdx.x // 32), uint32(cuda.threadIdx.x % 32)
        row, col = row0 + warp // warps_n * wm + lane // 4, col0 + warp % warps_n * wn + lane % 4 * 2
        write(C, acc, uint32(row), uint32(col), alpha, beta, global_address(bias))

    return tensorcore_fused_epilogue


INFO = KernelInfo(
    name="tensorcore_fused_epilogue",
    title="tensorcore_pipelined, bias and ReLU before C is stored",
    teaches=(
        "What a network does with a product, a bias for each column and max(0, x), costs a kernel of its own one read "
        "and one write of C in global memory. Here it happens while the sums are still in registers: some instructions "
        "a sum, and the bias, which is small and is read by every block of its columns."
    ),
    look_for="time and DRAM bytes equal to tensorcore_pipelined's; FADD and FMNMX after the K loop",
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
    arguments=("A", "B", "C", "alpha", "beta", "bias"),
    relu=True,
)
