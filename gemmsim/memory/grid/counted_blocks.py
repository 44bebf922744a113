"""The blocks of a sample that count, which are those whose weight is not 0.

The sample ends with blocks of weight 0. They are executed only to see where the neighbours of a block access memory
(`block_steps`, `footprint`). The cost of their single requests is not needed, so it is not computed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

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


def padded(values: NDArray, records: int) -> NDArray:
    """`values` of the records of a `counted_trace`, and 0 for those that it left out: [records]."""
    if len(values) == records:
        return values
    out = np.zeros(records, values.dtype)
    out[: len(values)] = values
    return out
