"""LDGSTS leaves two records: where it reads global memory, then where it writes shared memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import Program
from gemmsim.trace.types import WarpTrace

_COPY = MemoryAccess("global", "ldgsts")
_SHARED_BELOW = 1 << 32  # bases of shared records; global memory lies far above


def without_destinations(program: Program, trace: WarpTrace) -> WarpTrace:
    """The trace with one record a copy, the global one: the models take the shared side as free of conflicts."""
    copies = np.array([row_of(i).memory == _COPY for i in program.instructions], np.bool_)
    dropped = copies[trace.record_pc] & (trace.record_base < _SHARED_BELOW)
    if not dropped.any():
        return trace
    kept = ~dropped
    before = np.concatenate([[0], np.cumsum(kept)])
    return replace(
        trace,
        record_start=before[trace.record_start],
        record_pc=trace.record_pc[kept],
        record_pattern=trace.record_pattern[kept],
        record_base=trace.record_base[kept],
    )
