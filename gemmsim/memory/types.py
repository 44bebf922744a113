"""Defines what the memory models return: counters, traffic of each instruction, and cost of each memory record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.caches.l2 import L2State
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.support.provenance import Provenance


@dataclass(frozen=True)
class InstructionTraffic:
    """Memory behaviour of one static instruction over the whole launch (weights applied).

    index            static instruction index
    space            "global", "shared", "local" or "dshared" (see `Access.space`)
    op               "ld", "st", "atom", "red", "ldgsts" (space of its source), "zeros" (an LDGSTS that only writes),
                     "tma_ld", "tma_st" or "tma_red"
    width_bytes      bytes a lane
    requests         executions with an active lane (in `space`, where the instruction is generic)
    sectors          32-byte sectors that the requests touch
    tag_lookups      128-byte lines that are looked up in L1
    wavefronts       cycles of the data stage
    conflicts        wavefronts above the conflict-free count
    l1_hit_sectors   sectors that hit L1
    l2_sectors       sectors sent to L2 or asked of it
    l2_hit_sectors   those of l2_sectors that are not read from DRAM
    dram_sectors     sectors read from DRAM
    ideal_sectors    sectors that the bytes asked for would fill if they were packed
    used_bytes       distinct bytes asked for
    tag_wavefronts   cycles of the tag stage
    merged_sectors   of l2_sectors, those that L2 reads with others, for another SM or for the same asynchronous copy
    receivers        blocks of the cluster to which a bulk load brings its sectors (multicast), on average
    atomic_us        what it adds to the time for which the busiest slice of L2 works on atomics
    """

    index: int
    space: str
    op: str
    width_bytes: int
    requests: float
    sectors: float
    tag_lookups: float
    wavefronts: float
    conflicts: float
    l1_hit_sectors: float
    l2_sectors: float
    l2_hit_sectors: float
    dram_sectors: float
    ideal_sectors: float
    used_bytes: float
    tag_wavefronts: float = 0.0
    merged_sectors: float = 0.0
    receivers: float = 1.0
    atomic_us: float = 0.0


@dataclass(frozen=True)
class RecordCost:
    """What each memory record of a trace cost. Each array has one element a record, as `WarpTrace.record_pc` has.

    wavefronts     uint16 cycles of the L1/shared data stage
    tag_cycles     uint16 cycles of the tag stage (0 for shared memory)
    l2_sectors     uint16 sectors that went to L2 (L1 misses, and all stores)
    dram_sectors   uint16 sectors that went on to DRAM; of stores, in the end (`hierarchy.CacheResults`)
    dram_shared    bool whether it waits for sectors that DRAM reads for other requests, too
    runs           uint8 runs of 256 bytes that its sectors to L2 are in
    lines          uint8 lines that these are in
    partial_lines  uint8 lines in which the record writes sectors in part (0 where it does not write)
    remote         uint8 1 where the record is of another block's shared memory, else 0
    merged_share   float32 share of the instruction's sectors that may come with another SM's request
                   (`hierarchy.CacheResults.may_merge`)
    atomic_us      float32 what the record adds to the time of the slice of L2 that works longest on atomics
                   (`caches.slices.atomic_us`)
    """

    wavefronts: NDArray[np.uint16]
    tag_cycles: NDArray[np.uint16]
    l2_sectors: NDArray[np.uint16]
    dram_sectors: NDArray[np.uint16]
    dram_shared: NDArray[np.bool_]
    runs: NDArray[np.uint8]
    lines: NDArray[np.uint8]
    partial_lines: NDArray[np.uint8]
    remote: NDArray[np.uint8]
    merged_share: NDArray[np.float32]
    atomic_us: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DramTraffic:
    """How many 32-byte sectors DRAM reads and writes in the whole launch.

    It reads the sectors that L2 missed, and writes the dirty ones that L2 had to replace. What is still dirty when the
    kernel ends stays in L2. It is not written during the launch, so no counter of the launch has it.
    """

    read_sectors: float
    write_sectors: float


@dataclass(frozen=True)
class Traffic:
    """The memory traffic of a launch.

    counters      value of each Nsight Compute metric, for the whole launch
    provenance    how far each of these counters can be relied on, with the same keys
    instructions  one row for each executed memory instruction, by index; a generic one has a row for each space that it
                  reaches
    cost          what each memory record of the trace cost
    shapes        the (instruction, pattern) pairs of the trace, and what a request of each touches; instructions are
                  numbered as in `requests.generic.Split`
    notes         what was assumed
    l2_after      what L2 holds when the launch has ended; None where that is not known, because the launch was sampled
    """

    counters: dict[str, float]
    provenance: dict[str, Provenance]
    instructions: tuple[InstructionTraffic, ...]
    cost: RecordCost
    shapes: Shapes
    notes: tuple[str, ...] = ()
    l2_after: L2State | None = None
