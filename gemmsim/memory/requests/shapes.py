"""Finds the distinct (instruction, pattern) pairs of a trace, and what one request of each costs before any cache.

Such a pair is called a shape. A trace has millions of records and few shapes, so sectors, tag lookups and wavefronts
are computed once for each shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.atomics import Packets, packets_of
from gemmsim.memory.requests.banks import (
    BANK_SHIFT,
    conflict_free,
    copy_wavefronts,
    floor_wavefronts,
    held_longer,
    wavefronts,
    wavefronts_apart,
)
from gemmsim.memory.requests.coalescer import LINE_SHIFT, Coalesced, coalesce
from gemmsim.memory.requests.tags import LaneLayout
from gemmsim.trace.types import Patterns, WarpTrace, active_lanes
from gemmsim.trace.words import STACK_STRIDE

WORD_BYTES = 1 << BANK_SHIFT
_DENSE_PAIRS = 1 << 22  # below this a table over all pairs is cheaper than sorting the records


@dataclass(frozen=True)
class Shapes:
    """The shapes of a trace; arrays are int64 [shapes] unless said otherwise.

    of_record    int32 [records] index of each record's shape
    pc           static index of the shape's instruction
    coalesced    see `Coalesced`; meaningless for shared memory, whose addresses have no sectors
    lanes        see `tags.LaneLayout`: what decides the cycles of the data stage
    least        cycles that the data stage would take if no bank were asked for two words
    longer       cycles that it takes beyond the wavefronts that are counted (`banks.held_longer`)
    shared       bool [shapes] whether the shape is of shared memory
    packets      what an atomic operation on global memory sends to L2
    """

    of_record: NDArray[np.int32]
    pc: NDArray[np.int64]
    coalesced: Coalesced
    lanes: LaneLayout
    least: NDArray[np.int64]
    longer: NDArray[np.int64]
    shared: NDArray[np.bool_]
    packets: Packets

    @property
    def again(self) -> NDArray[np.int64]:
        """How many sectors the packets of an atomic operation touch beyond the distinct ones: int64 [shapes]."""
        return np.where(self._atomic, self.packets.by_shape(self.packets.sectors) - self.coalesced.sectors, 0)

    @property
    def further_packets(self) -> NDArray[np.int64]:
        """How many packets an atomic operation sends beyond one for each line: int64 [shapes]."""
        return np.where(self._atomic, self.packets.by_shape(self.packets.packets) - self.coalesced.lines, 0)

    @property
    def _atomic(self) -> NDArray[np.bool_]:
        return np.diff(self.packets.start) > 0


def shapes_of(trace: WarpTrace, accesses: dict[int, Access]) -> Shapes:
    """Find the shapes of all memory records of a trace.

    accesses  every executed memory instruction, by static index
    """
    of_record, pc, pattern = _distinct(trace)
    return _measure(of_record, pc, trace.patterns, pattern, accesses)


def _distinct(trace: WarpTrace) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the shape of each record, and the instruction and the pattern of each shape."""
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
    """Fill `Shapes` from the instruction `pc` and the pattern number `pattern` of each shape."""
    used, row = np.unique(pc, return_inverse=True)
    executed = [accesses[index] for index in used.tolist()]

    def of_shapes(property_of: Callable[[Access], int], dtype: type) -> NDArray:
        return np.array([property_of(access) for access in executed], dtype)[row]

    offsets = patterns.offsets_bytes[pattern]
    active = active_lanes(patterns.active_mask[pattern])
    widths = of_shapes(lambda a: a.width_bytes, np.int64)
    shared = of_shapes(lambda a: a.on_chip, np.bool_)
    lane_bytes = of_shapes(lambda a: a.lane_bytes, np.int64)
    floors = of_shapes(lambda a: floor_wavefronts(a.lane_bytes, a.lanes), np.int64)
    written = of_shapes(lambda a: a.copies and not a.bypasses, np.int64)
    (waves, longer), least = np.zeros((2, len(pc)), np.int64), floors
    for access in set(executed):
        chosen = np.array([one == access for one in executed], bool)[row]
        requests = offsets[chosen], active[chosen], access.lane_bytes
        if access.copies:
            waves[chosen] = copy_wavefronts(*requests, access.bypasses)
        elif access.arithmetic and not access.on_chip:
            waves[chosen] = wavefronts_apart(*requests)
        else:
            waves[chosen] = wavefronts(*requests, access.merges)
        if access.arithmetic and access.on_chip:
            longer[chosen] = held_longer(offsets[chosen], active[chosen], access)
        if access.merges:
            least[chosen] = conflict_free(*requests)
    lanes = LaneLayout(
        line=np.where(active & ~shared[:, None], offsets >> LINE_SHIFT, -1),
        piece=offsets // np.maximum(lane_bytes, WORD_BYTES)[:, None],
        groups=np.maximum(lane_bytes // WORD_BYTES, 1),
        shares=of_shapes(lambda a: not a.copies, np.bool_),
        by_pass=of_shapes(lambda a: not a.on_chip and a.op in ("ld", "ldgsts") and not a.bypasses, np.bool_),
        written=written,
        wavefronts=waves + written,
    )
    stacked = of_shapes(lambda a: a.space == "local", np.bool_)
    return Shapes(
        of_record,
        pc,
        coalesced=coalesce(*_words(offsets, active, widths, stacked)),
        lanes=lanes,
        least=least + written,
        longer=longer,
        shared=shared,
        packets=packets_of(offsets, active, of_shapes(lambda a: bool(a.arithmetic), np.bool_) & ~shared),
    )


def _words(
    offsets: NDArray[np.int64], active: NDArray[np.bool_], widths: NDArray[np.int64], stacked: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return the arguments of `coalesce`, with a column for each word of an access of several words to local memory,
    where the words of a thread lie a line apart (`trace.words.STACK_STRIDE`).

    stacked  bool [shapes] whether a shape is of local memory
    """
    words = np.where(stacked, np.maximum(widths // WORD_BYTES, 1), 1)
    if not (words > 1).any():
        return offsets, active, widths
    columns = [np.where(n < words, n * STACK_STRIDE, 0)[:, None] + offsets for n in range(int(words.max()))]
    return (
        np.concatenate(columns, axis=1),
        np.tile(active, len(columns)),
        np.where(words > 1, WORD_BYTES, widths),
    )
