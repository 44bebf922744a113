"""A launch, and the trace that executing it leaves: arrays with one element for each access, never objects."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES


def active_lanes(masks: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """bool [..., 32]: the lanes whose bit is set in each mask, uint32 [...]."""
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
    """A kernel launch: `grid` in blocks and `block` in threads are (x, y, z); `dynamic_shared_bytes` is of a block."""

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
    pc_start          int64 [warps + 1] likewise for the instruction stream; all zero where streams were not recorded
    pc                int32 [issued] static instruction index of every warp instruction executed, in program order

    An instruction leaves one record where any lane accesses memory, except: LDGSTS leaves that of the global addresses
    it reads (of the lanes that do not only fill with zeros) and then that of the shared ones it writes, both with its
    index; and a generic LD, ST or ATOM one for each space that its lanes are in, global, shared, local in this order.
    Bases below 2**32 are of shared memory, global ones start at 0x7F00_0000_0000, those of local memory lie between.
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
        """How many blocks count. Those of weight 0 come last in a sample.

        They are executed only to see where the neighbours of a block access memory. The cost of their single requests
        is not needed, so it is not computed.
        """
        return int(np.flatnonzero(self.weight)[-1]) + 1


@dataclass(frozen=True)
class Sketch:
    """What some blocks did, in no particular order (see `WarpTrace`). The next sketch overwrites its record arrays."""

    executed: NDArray[np.int64]
    threads_executed: NDArray[np.int64]
    record_pc: NDArray[np.int32]
    record_pattern: NDArray[np.int32]
    record_base: NDArray[np.uint64]
    patterns: Patterns


@dataclass(frozen=True)
class Execution:
    """A finished functional run.

    trace     see `WarpTrace`
    outputs   the arrays after the run, one an argument (None for scalars)
    written   one bool array an array argument, True where the kernel stored (None for scalars)
    sampled   whether only a part of the grid was executed
    """

    trace: WarpTrace
    outputs: tuple[NDArray | None, ...]
    written: tuple[NDArray[np.bool_] | None, ...]
    sampled: bool
    notes: tuple[str, ...] = field(default=())
