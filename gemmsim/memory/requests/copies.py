"""What asynchronous copies (LDGSTS) do where they write to shared memory: bank conflicts, and sectors sent again.

Each copy leaves two records in a trace: first of the global addresses that it reads, then of the shared addresses that
it writes. The models need the first alone, and of the second what `trace.copies.Copies` says. A copy of which no lane
reads, as behind the last tile of a pipeline, writes zeros and leaves the second alone. It asks for no tags and no
sectors, but takes the data stage as a store does (own microbenchmark on an H200, tests/records/h200_zero_copies.json).

On an H200 a copy through L1 takes as many wavefronts as its reads, one and a half more, and those that conflicts where
it writes add by the rule of stores (own microbenchmark, tests/records/h200_ldgsts.json: 4, 8 and 16 bytes a lane at
nine distances). A copy that bypasses L1 takes as many wherever it writes; its time grows, too, which is not modelled.

What bypasses L1 goes from L2 to shared memory sector by sector. L1 counts the sectors that a copy writes. L2 sends one
for each pair of a sector that is read and one that is written: a row that several lanes of a warp copy to several
places comes several times, and so does one whose 16 bytes two lanes copy into one sector (own microbenchmark on an
H200, tests/records/h200_copied_rows.json). Where a copy goes through L1, as where lanes load to registers, each sector
comes once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import Program
from gemmsim.memory.requests.access import Access, access_of
from gemmsim.memory.requests.banks import floor_wavefronts, wavefronts
from gemmsim.memory.requests.coalescer import SECTOR_SHIFT, SECTORS_PER_LINE
from gemmsim.trace.copies import Copies
from gemmsim.trace.types import Patterns, WarpTrace, active_lanes

_COPY = MemoryAccess("global", "ldgsts")
_SHARED_BELOW = 1 << 32  # bases of shared records; global memory lies far above
_HALF_SHIFT = 4  # a copy past L1 has 16 bytes a lane


def with_copies(program: Program, trace: WarpTrace) -> WarpTrace:
    """Return the trace with one record of each asynchronous copy: the global one, with what the shared one says, or the
    shared one of a copy that writes zeros.
    """
    copies = np.array([row_of(i).memory == _COPY for i in program.instructions], np.bool_)
    dropped = copies[trace.record_pc] & (trace.record_base < _SHARED_BELOW)
    written = np.flatnonzero(dropped)
    if not len(written):
        return trace
    # The record before is that of the same copy's reads. It is missing where all lanes write zeros.
    before = written - 1
    has_reads = (written > 0) & (trace.record_pc[before] == trace.record_pc[written]) & ~dropped[before]
    remains = ~dropped
    remains[written[~has_reads]] = True
    kept_before = np.concatenate([[0], np.cumsum(remains)])
    read = before[has_reads]
    found = np.zeros((4, int(kept_before[-1])), np.int64)
    found[:, kept_before[read]] = _of_copies(program, trace, read, written[has_reads])
    zeros = np.zeros(found.shape[1], np.bool_)
    zeros[kept_before[written[~has_reads]]] = True
    relation, repeats = trace.relation, trace.repeats
    return replace(
        trace,
        relation=relation and replace(relation, record_mover=relation.record_mover[remains]),
        record_start=kept_before[trace.record_start],
        record_pc=trace.record_pc[remains],
        record_pattern=trace.record_pattern[remains],
        record_base=trace.record_base[remains],
        copies=Copies(
            conflicts=found[0].astype(np.uint8),
            counted=found[1].astype(np.int8),
            again=found[2].astype(np.uint8),
            asked=found[3].astype(np.uint8),
            zeros=zeros,
        ),
        repeats=repeats
        and replace(repeats, of_record=repeats.of_record[remains], step_bytes=repeats.step_bytes[remains]),
    )


def _of_copies(
    program: Program, trace: WarpTrace, read: NDArray[np.int64], written: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return conflicts, counted, again and asked (see `Copies`) of copies: int64 [4, copies].

    read, written  int64 [copies] their records of global and of shared memory
    """
    key = np.stack([trace.record_pc[written], trace.record_pattern[read], trace.record_pattern[written]])
    shapes, of_copy = np.unique(key, axis=1, return_inverse=True)
    found = np.zeros((4, shapes.shape[1]), np.int64)
    for number, (pc, source, target) in enumerate(shapes.T.tolist()):
        access = access_of(program.instructions[pc])
        if access is None:
            continue
        if access.bypasses:
            found[1:, number] = _past_l1(trace.patterns, source, target)
        else:
            found[0, number] = _conflicts(trace.patterns, target, access)
    return found[:, of_copy.reshape(-1)]


def _conflicts(patterns: Patterns, target: int, access: Access) -> int:
    """Return the wavefronts that bank conflicts add to a copy through L1."""
    active = active_lanes(patterns.active_mask[target : target + 1])
    waves = wavefronts(patterns.offsets_bytes[target][None], active, access.lane_bytes, merges=False)
    return max(0, int(waves[0]) - floor_wavefronts(access.lane_bytes))


def _past_l1(patterns: Patterns, source: int, target: int) -> tuple[int, int, int]:
    """Return how many sectors more L1 counts for a copy past L1 than it touches, how many L2 sends again, and how many
    lines it asks L2 for."""
    active = active_lanes(patterns.active_mask[source : source + 1])[0]
    half = patterns.offsets_bytes[source][active] >> _HALF_SHIFT
    to, origin = patterns.offsets_bytes[target][active] >> SECTOR_SHIFT, half >> 1
    touched = len(np.unique(origin))
    pairs, of_lane = np.unique(np.stack([to, origin]), axis=1, return_inverse=True)
    upper = np.bincount(of_lane.reshape(-1), half & 1, pairs.shape[1])
    lower = np.bincount(of_lane.reshape(-1)) - upper
    asked = np.unique(np.stack([*(pairs // SECTORS_PER_LINE), lower > 0, upper > 0]), axis=1)
    sent = np.maximum(upper, lower)
    return len(np.unique(to)) - touched, int(sent.sum()) - touched, asked.shape[1]
