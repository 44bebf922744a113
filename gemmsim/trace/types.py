"""Defines a launch and the trace that its execution leaves. A trace is arrays, with an element for each access."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES


def active_lanes(masks: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return bool [..., 32]: for each of `masks`, uint32 [...], whether the bit of each lane is set."""
    return (masks[..., None] >> np.arange(WARP_LANES, dtype=np.uint32)) & 1 == 1


@dataclass(frozen=True)
class Argument:
    """One kernel argument.

    dtype   f16, bf16, f32, f64, i8, i32, i64, u8, u32, u64
    shape   () for a scalar; C-contiguous array otherwise
    value   the scalar's value, or the array's initial content (bf16 as its uint16 bit patterns)
    """

    dtype: str
    shape: tuple[int, ...]
    value: object


@dataclass(frozen=True)
class Launch:
    """A kernel launch.

    grid, block           (x, y, z): blocks of the grid, threads of a block
    args                  the kernel's arguments in order
    dynamic_shared_bytes  dynamic shared memory of each block
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Argument, ...]
    dynamic_shared_bytes: int = 0

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        return -(-self.threads_per_block // WARP_LANES)

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True)
class Patterns:
    """The distinct access shapes of a trace. The address of lane l of a record is its base + offsets[pattern, l].

    offsets_bytes  int64 [patterns, 32], relative to the record's base; 0 in inactive lanes
    active_mask    uint32 [patterns], bit l set where lane l accesses memory (not all-zero)

    The base is the lowest active address rounded down to 128 bytes, so that banks, sectors and lines of a pattern
    are the same at every base.
    """

    offsets_bytes: NDArray[np.int64]
    active_mask: NDArray[np.uint32]


@dataclass(frozen=True)
class WarpTrace:
    """The trace of some blocks of a launch.

    Warp w of the trace is warp w % warps_per_block of block blocks[w // warps_per_block].

    blocks            int64 [nb] linear block ids (x fastest), in execution order
    weight            float64 [nb] blocks of the grid that each stands for (1 where nothing was sampled)
    executed          int64 [nb, instructions] warp-level executions of each static instruction
    threads_executed  int64 [nb, instructions] thread-level executions, guard predicate and active mask applied
    record_start      int64 [warps + 1] memory records of warp w: record_start[w]:record_start[w + 1], in program order
    record_pc         int32 [records] static instruction index
    record_pattern    int32 [records] index into `patterns`
    record_base       uint64 [records] byte address, a multiple of 128
    pc_start          int64 [warps + 1] as record_start, but for items of pc; all zero where streams were not recorded
    pc                int32 [issued] static instruction index of every warp instruction executed, in program order

    An instruction leaves one record where any lane accesses memory. There are two exceptions. LDGSTS leaves a record of
    the global addresses that it reads (of the lanes that copy more than zeros), and then a record of the shared
    addresses that it writes; both have its index. A generic LD, ST or ATOM leaves one record for each space that its
    lanes are in, in the order global, shared, local.

    Bases below 2**32 are of shared memory, those of global memory start at 0x7F00_0000_0000, and those of local memory
    lie between.
    """

    warps_per_block: int
    blocks: NDArray[np.int64]
    weight: NDArray[np.float64]
    executed: NDArray[np.int64]
    threads_executed: NDArray[np.int64]
    record_start: NDArray[np.int64]
    record_pc: NDArray[np.int32]
    record_pattern: NDArray[np.int32]
    record_base: NDArray[np.uint64]
    pc_start: NDArray[np.int64]
    pc: NDArray[np.int32]
    patterns: Patterns

    @property
    def counted_blocks(self) -> int:
        """The number of blocks up to the last one whose weight is not 0.

        Blocks of weight 0 are executed only to see where the neighbours of a block access memory. The cost of their
        single requests is not needed; for such blocks at the end of a sample it is not computed.
        """
        return int(np.flatnonzero(self.weight)[-1]) + 1


@dataclass(frozen=True)
class Sketch:
    """What some blocks did: arrays named as in `WarpTrace`, but with the records not sorted by warp.

    The next sketch that the same executor makes overwrites the record arrays.
    """

    executed: NDArray[np.int64]
    threads_executed: NDArray[np.int64]
    record_pc: NDArray[np.int32]
    record_pattern: NDArray[np.int32]
    record_base: NDArray[np.uint64]
    patterns: Patterns


@dataclass(frozen=True)
class Execution:
    """What an execution of blocks returns: trace and results.

    trace     see `WarpTrace`
    outputs   for each argument its array after the run (None for scalars)
    written   for each argument a bool array of its shape, True where the kernel stored (None for scalars)
    sampled   whether only a part of the grid was executed
    """

    trace: WarpTrace
    outputs: tuple[NDArray | None, ...]
    written: tuple[NDArray[np.bool_] | None, ...]
    sampled: bool
    notes: tuple[str, ...] = field(default=())
