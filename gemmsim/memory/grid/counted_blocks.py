"""The blocks of a sample that count.

Blocks that stand for none are executed to see where a block's neighbours access memory (see `steps`, `footprint`).
What each of their accesses costs nobody asks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.trace.types import WarpTrace


def counted_trace(trace: WarpTrace) -> WarpTrace:
    """The trace without the blocks at its end whose weight is 0; nothing is copied."""
    blocks = int(np.flatnonzero(trace.weight)[-1]) + 1
    warps = blocks * trace.warps_per_block
    records = int(trace.record_start[warps])
    return replace(
        trace,
        blocks=trace.blocks[:blocks],
        weight=trace.weight[:blocks],
        executed=trace.executed[:blocks],
        threads_executed=trace.threads_executed[:blocks],
        record_start=trace.record_start[: warps + 1],
        record_pc=trace.record_pc[:records],
        record_pattern=trace.record_pattern[:records],
        record_base=trace.record_base[:records],
        pc_start=trace.pc_start[: warps + 1],
        pc=trace.pc[: int(trace.pc_start[warps])],
    )


def counted_requests(requests: L1Requests, trace: WarpTrace) -> L1Requests:
    """Those of `trace`, which is `counted_trace` of the trace that they are of."""
    warps = len(trace.blocks) * trace.warps_per_block
    accesses = int(requests.start[warps])
    return L1Requests(
        record=requests.record[:accesses],
        sector=requests.sector[:accesses],
        shape=requests.shape[:accesses],
        kind=requests.kind[:accesses],
        pc=requests.pc[:accesses],
        start=requests.start[: warps + 1],
    )


def padded_records(values: NDArray, size: int) -> NDArray:
    """`values`, and 0 for each record that was left out: [size]."""
    if len(values) == size:
        return values
    out = np.zeros(size, values.dtype)
    out[: len(values)] = values
    return out
