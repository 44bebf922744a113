"""The distinct (instruction, pattern) pairs of a trace, and what one request of each costs before any cache.

A trace has millions of records and few shapes, so sectors, tag lookups and wavefronts are worked out once a shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.banks import BANK_SHIFT, conflict_free, copy_wavefronts, floor_wavefronts, wavefronts
from gemmsim.memory.requests.coalescer import LINE_SHIFT, Coalesced, coalesce
from gemmsim.memory.requests.tags import LaneLayout
from gemmsim.trace.types import Patterns, WarpTrace, active_lanes

WORD_BYTES = 1 << BANK_SHIFT
_DENSE_PAIRS = 1 << 22  # below this a table over all pairs is cheaper than sorting the records


@dataclass(frozen=True)
class Shapes:
    """int64 [shapes] unless said otherwise.

    of_record    int32 [records] shape of each record
    pc           static instruction index
    coalesced    see `Coalesced`; meaningless for shared memory, whose addresses have no sectors
    lanes        see `tags.LaneLayout`: what decides the cycles of the data stage
    least        cycles of the data stage if no bank were asked for two words
    shared       bool [shapes] whether it is of shared memory
    """

    of_record: NDArray[np.int32]
    pc: NDArray[np.int64]
    coalesced: Coalesced
    lanes: LaneLayout
    least: NDArray[np.int64]
    shared: NDArray[np.bool_]


def shapes_of(trace: WarpTrace, accesses: dict[int, Access]) -> Shapes:
    """The shapes of all memory records; `accesses` holds every executed memory instruction, by static index."""
    of_record, pc, pattern = _distinct(trace)
    return _measure(of_record, pc, trace.patterns, pattern, accesses)


def _distinct(trace: WarpTrace) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    patterns = max(1, len(trace.patterns.active_mask))
    instructions = trace.executed.shape[1]
    key = trace.record_pc.astype(np.int64) * patterns + trace.record_pattern
    if instructions * patterns <= _DENSE_PAIRS:
        seen = np.zeros(instructions * patterns, bool)
        seen[key] = True
        keys = np.flatnonzero(seen)
        number = np.cumsum(seen, dtype=np.int32) - 1
        of_record = number[key]
    else:
        keys, inverse = np.unique(key, return_inverse=True)
        of_record = inverse.astype(np.int32)
    return of_record, keys // patterns, keys % patterns


def _measure(
    of_record: NDArray[np.int32],
    pc: NDArray[np.int64],
    patterns: Patterns,
    pattern: NDArray[np.int64],
    accesses: dict[int, Access],
) -> Shapes:
    used, row = np.unique(pc, return_inverse=True)
    kinds = [accesses[index] for index in used.tolist()]
    offsets = patterns.offsets_bytes[pattern]
    active = active_lanes(patterns.active_mask[pattern])
    widths = np.array([a.width_bytes for a in kinds], np.int64)[row]
    coalesced = coalesce(offsets, active, widths)
    floors = np.array([floor_wavefronts(a.width_bytes, a.lanes) for a in kinds], np.int64)
    waves, least = np.zeros(len(pc), np.int64), floors[row]
    for width, merges in {(a.width_bytes, _merges(a)) for a in kinds if not _copies(a)}:
        chosen = np.array([(a.width_bytes, _merges(a)) == (width, merges) and not _copies(a) for a in kinds], bool)[row]
        waves[chosen] = wavefronts(offsets[chosen], active[chosen], width, merges)
        if merges:
            least[chosen] = conflict_free(offsets[chosen], active[chosen], width, merges)
    for width, bypasses in {(a.width_bytes, a.bypasses) for a in kinds if _copies(a)}:
        chosen = np.array([_copies(a) and (a.width_bytes, a.bypasses) == (width, bypasses) for a in kinds], bool)[row]
        waves[chosen] = copy_wavefronts(offsets[chosen], active[chosen], width, bypasses)
    written = np.where([_copies(a) and not a.bypasses for a in kinds], floors, 0)[row]
    shared = np.array([a.space == "shared" for a in kinds], bool)[row]
    lanes = LaneLayout(
        line=np.where(active & ~shared[:, None], offsets >> LINE_SHIFT, -1),
        piece=offsets // np.maximum(widths, WORD_BYTES)[:, None],
        groups=np.maximum(widths // WORD_BYTES, 1),
        shares=np.array([not _copies(a) for a in kinds], bool)[row],
        by_pass=np.array([a.space != "shared" and a.op in ("ld", "ldgsts") and not a.bypasses for a in kinds])[row],
        written=written,
        wavefronts=waves + written,
    )
    return Shapes(of_record, pc, coalesced, lanes, least + written, shared)


def _copies(access: Access) -> bool:
    return access.op == "ldgsts"


def _merges(access: Access) -> bool:
    return access.op == "ld" and access.routable and access.space == "shared"
