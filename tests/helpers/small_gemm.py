"""A GEMM traced by hand, of which all blocks or one were executed, on a small GPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from trace_builder import Accesses, program, warp_trace

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.trace.types import Argument, Launch, Relation, WarpTrace

GPU = load_gpu("h200")
GPU = replace(GPU, l1=replace(GPU.l1, spare_lines=0, lost_lines=(0, 0, 1)))  # some L1s here have 32 lines
LOAD_A, LOAD_B, STORE_C = range(3)
GEMM = program("LDG.E", "LDG.E", "STG.E")
A, B, C = 1 << 20, 2 << 20, 3 << 20
SAMPLE = (1, 1)  # the block that is executed, as (x, y)


def gemm_block(n: int, x: int, y: int) -> list[Accesses]:
    """A block of 32 columns and 4 rows of C = A B, matrices n wide: a warp a row, A broadcast, B packed."""
    warps = []
    for row in range(4 * y, 4 * y + 4):
        columns = [32 * x + lane for lane in range(32)]
        accesses = []
        for k in range(n):
            accesses.append((LOAD_A, [A + 4 * (row * n + k)] * 32))
            accesses.append((LOAD_B, [B + 4 * (k * n + column) for column in columns]))
        accesses.append((STORE_C, [C + 4 * (row * n + column) for column in columns]))
        warps.append(accesses)
    return warps


@cache
def gemm_trace(n: int, only: tuple[int, int] | None) -> WarpTrace:
    """All blocks, or only one, with what is known of the others from it."""
    gx, gy = n // 32, n // 4
    if only is None:
        return warp_trace(3, {x + gx * y: gemm_block(n, x, y) for y in range(gy) for x in range(gx)})
    trace = warp_trace(3, {only[0] + gx * only[1]: gemm_block(n, *only)}, [float(gx * gy)])
    right, down = np.arange(gx * gy) % gx - only[0], np.arange(gx * gy) // gx - only[1]
    rows, columns = 4 * n * 4 * down, 4 * 32 * right  # bytes
    moves = np.stack([0 * rows, rows, columns, rows + columns])  # for A, B and C
    threads = gx * gy * trace.threads_executed[0]
    relation = Relation(np.zeros(gx * gy, np.int64), trace.record_pc + 1, moves, threads, False)
    return replace(trace, relation=relation)


def gemm(
    n: int,
    only: tuple[int, int] | None = None,
    l2_bytes: int = 1 << 20,
    sms: int = 3,
    warm: bool = False,
    l1_bytes: int = 64 << 10,
    resident: int = 2,
    partitions: int = 1,
) -> Traffic:
    """An n x n GEMM on a small GPU, all blocks or only the one at (x, y)."""
    grid, trace = (n // 32, n // 4, 1), gemm_trace(n, only)
    gpu = replace(GPU, sm=replace(GPU.sm, count=sms), l2=replace(GPU.l2, size_bytes=l2_bytes, partitions=partitions))
    arguments = tuple(Argument("f32", (n, n), None) for _ in range(3))
    return serve(GEMM, Launch(grid, (32, 4, 1), arguments), trace, gpu, l1_bytes, resident, warm)
