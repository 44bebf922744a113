"""Bank conflicts of asynchronous copies (LDGSTS) where they write to shared memory.

Each copy leaves two records in a trace: first of the global addresses that it reads, then of the shared addresses that
it writes. The models need the first alone, and of the second the wavefronts that its conflicts add.

On an H200 a copy through L1 takes as many wavefronts as its reads, one and a half more, and those that conflicts where
it writes add by the rule of stores (own microbenchmark, tests/records/h200_ldgsts.json: 4, 8 and 16 bytes a lane at
nine distances). A copy that bypasses L1 takes as many wherever it writes; its time grows, too, which is not modelled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import Program
from gemmsim.memory.requests.access import access_of
from gemmsim.memory.requests.banks import floor_wavefronts, wavefronts
from gemmsim.trace.types import WarpTrace, active_lanes

_COPY = MemoryAccess("global", "ldgsts")
_SHARED_BELOW = 1 << 32  # bases of shared records; global memory lies far above


def with_conflicts(program: Program, trace: WarpTrace) -> WarpTrace:
    """Return the trace with only the global record of each asynchronous copy, and what conflicts add to each."""
    copies = np.array([row_of(i).memory == _COPY for i in program.instructions], np.bool_)
    dropped = copies[trace.record_pc] & (trace.record_base < _SHARED_BELOW)
    written = np.flatnonzero(dropped)
    if not len(written):
        return trace
    # The record before is that of the same copy's reads. It is missing where all lanes write zeros.
    before = written - 1
    has_reads = (written > 0) & (trace.record_pc[before] == trace.record_pc[written]) & ~dropped[before]
    remains = ~dropped
    kept_before = np.concatenate([[0], np.cumsum(remains)])
    conflicts = np.zeros(int(kept_before[-1]), np.uint8)
    conflicts[kept_before[before[has_reads]]] = _added(program, trace, written)[has_reads]
    relation, repeats = trace.relation, trace.repeats
    return replace(
        trace,
        relation=relation and replace(relation, record_mover=relation.record_mover[remains]),
        record_start=kept_before[trace.record_start],
        record_pc=trace.record_pc[remains],
        record_pattern=trace.record_pattern[remains],
        record_base=trace.record_base[remains],
        copy_conflicts=conflicts,
        repeats=repeats
        and replace(repeats, of_record=repeats.of_record[remains], step_bytes=repeats.step_bytes[remains]),
    )


def _added(program: Program, trace: WarpTrace, written: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the wavefronts that conflicts add to each of the records `written`: uint8 [written]."""
    key = trace.record_pc[written].astype(np.int64) << 32 | trace.record_pattern[written]
    shapes, of_record = np.unique(key, return_inverse=True)
    found = np.zeros(len(shapes), np.uint8)
    for number, shape in enumerate(shapes.tolist()):
        access, pattern = access_of(program.instructions[shape >> 32]), shape & 0xFFFFFFFF
        if access is not None and not access.bypasses:
            active = active_lanes(trace.patterns.active_mask[pattern : pattern + 1])
            waves = wavefronts(trace.patterns.offsets_bytes[pattern][None], active, access.lane_bytes, merges=False)
            found[number] = max(0, int(waves[0]) - floor_wavefronts(access.lane_bytes))
    return found[of_record]
