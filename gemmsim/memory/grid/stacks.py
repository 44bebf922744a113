"""Places local memory: the stacks of the threads of each block, where the GPU has them.

Word k of a warp's 32 threads lies in one line, word k + 1 in the next (`trace.engine.memory_access`). The driver sets
memory aside for as many warps as all SMs hold at once, and a block uses the place of one that was resident before it.
So what a launch touches is, however many blocks it has,

    bytes = SMs * resident threads of an SM * bytes of a thread's stack

The trace has the stacks of each block at the same addresses, because it does not know the SMs. Here they are moved to
the places of the block's SM, just below the arrays.

Source: own microbenchmark on an H200 (tests/records/h200_local_memory.json): what DRAM reads and writes follows the
footprint of the resident threads, and four waves of blocks take no more of L2 than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.requests.access import Access
from gemmsim.support.sorting import new_rows
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS
from gemmsim.trace.types import WarpTrace
from gemmsim.trace.words import LOCAL_BASE


def stack_places(placement: Placement) -> NDArray[np.int64]:
    """Return which place for stacks each block of the grid uses: int64 [blocks].

    Those of an SM follow one another. Of blocks that are resident together, each has a place of its own.
    """
    blocks = np.arange(len(placement.sm))
    order = np.lexsort((blocks, placement.generation, placement.sm))
    first = np.flatnonzero(new_rows(placement.sm[order], placement.generation[order]))
    number = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    place = np.empty(len(order), np.int64)
    place[order] = placement.sm[order] * (number.max(initial=0) + 1) + number
    return place


def with_stacks(trace: WarpTrace, accesses: Mapping[int, Access], placement: Placement, stack_bytes: int) -> WarpTrace:
    """Return the trace with its accesses to local memory at the places of the SMs that its blocks run on.

    accesses     the executed memory instructions, by the number that the records give them
    stack_bytes  of local memory that a thread has
    """
    of_stacks = [index for index, access in accesses.items() if access.space == "local"]
    if not stack_bytes or not of_stacks:
        return trace
    local = np.isin(trace.record_pc, of_stacks)
    place = stack_places(placement)
    of_block = trace.warps_per_block * 32 * stack_bytes
    first = FIRST_ADDRESS - LOCAL_BASE - (int(place.max()) + 1) * of_block  # from where the trace has them
    relation = trace.relation
    if relation is None:
        records = np.diff(trace.record_start[:: trace.warps_per_block])
        by_record = np.repeat(first + place[trace.blocks] * of_block, records)
        return replace(trace, record_base=trace.record_base + np.where(local, by_record, 0).astype(np.uint64))
    movers = np.where(local, len(relation.offset_bytes), relation.record_mover).astype(np.int32)
    offset_bytes = np.concatenate([relation.offset_bytes, place[None] * of_block])
    return replace(
        trace,
        record_base=trace.record_base + np.where(local, first, 0).astype(np.uint64),
        relation=replace(relation, record_mover=movers, offset_bytes=offset_bytes),
    )
