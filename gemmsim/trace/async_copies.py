"""Removes the shared-memory records of asynchronous copies (LDGSTS) from a trace.

Each copy leaves two records: first of the global addresses that it reads, then of the shared addresses that it writes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import Program
from gemmsim.trace.types import WarpTrace

_COPY = MemoryAccess("global", "ldgsts")
_SHARED_BELOW = 1 << 32  # bases of shared records; global memory lies far above


def without_destinations(program: Program, trace: WarpTrace) -> WarpTrace:
    """Return the trace with only the global record of each asynchronous copy of `program`.

    The timing models assume that these copies write to shared memory without bank conflicts, so they need no record of
    the writes.
    """
    copies = np.array([row_of(i).memory == _COPY for i in program.instructions], np.bool_)
    dropped = copies[trace.record_pc] & (trace.record_base < _SHARED_BELOW)
    if not dropped.any():
        return trace
    remains = ~dropped
    before = np.concatenate([[0], np.cumsum(remains)])
    relation = trace.relation
    return replace(
        trace,
        relation=relation and replace(relation, record_mover=relation.record_mover[remains]),
        record_start=before[trace.record_start],
        record_pc=trace.record_pc[remains],
        record_pattern=trace.record_pattern[remains],
        record_base=trace.record_base[remains],
    )
