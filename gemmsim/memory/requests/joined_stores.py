"""Stores of a warp to the same lines one after another: L1 sends what they write to L2 together.

A thread that writes 16 bytes by four stores of four bytes touches each sector four times. On an H200 one warp alone
sends each sector once, whatever lies between the stores. Where many warps store at the same time, what another one
writes comes between: of the sectors that the last three of four such stores write, 19 % are sent by themselves if the
warps compute in between, and 59 % if not; of five and six stores to as many lines 20 and 28 %, and 67 and 75 %; of
seven 69 and 89 %, of stores to eight lines and more nearly all, and many of those of less than four bytes (own
microbenchmark, tests/records/h200_stored_pieces.json). Without a pause
one SM joins what at most 28 lines of other stores lie between: one warp's stores to 16 lines, those of four warps to
seven each, but none of 32 lines together; stores of one and two bytes count twice. Eight warps, two of a sub-partition,
come between each other. Here all of a request of up to `l1.joined_lines` and at least `l1.joined_lane_bytes` a lane are
sent together, `l1.joined_stores` at most, and none of others.

Stores of different warps to the same sectors are joined there, too, and those of kernels that load what they store
before: of study records 0.13 to 0.9 of the sectors that are sent here. That is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L1
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.coalescer import LINE_SHIFT, SECTOR_BYTES, SECTOR_SHIFT, SECTORS_PER_LINE
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.trace.types import WarpTrace, active_lanes


@dataclass(frozen=True)
class JoinedStores:
    """What is sent together with an earlier store: arrays [records].

    sectors        int16 how many of the record's sectors
    joins          bool whether the record is one of stores that may be sent together
    partial_lines  uint8 of the first of those that are, in how many lines they write sectors in part; else 0
    """

    sectors: NDArray[np.int16]
    joins: NDArray[np.bool_]
    partial_lines: NDArray[np.uint8]


def joined_stores(trace: WarpTrace, shapes: Shapes, accesses: dict[int, Access], l1: L1) -> JoinedStores | None:
    """Find the stores of a trace that are sent together; None where there are none."""
    stores = [
        index
        for index, access in accesses.items()
        if access.space == "global" and access.op == "st" and access.width_bytes >= l1.joined_lane_bytes
    ]
    record = np.flatnonzero(np.isin(trace.record_pc, stores))
    shape, base = shapes.of_record[record], trace.record_base[record]
    warp = np.searchsorted(trace.record_start, record, side="right")
    lines = _line_sets(shapes, np.unique(shape), l1.joined_lines)[shape]
    follows = (np.diff(warp) == 0) & (base[1:] == base[:-1]) & (lines[1:] == lines[:-1]) & (lines[1:] >= 0)
    if not follows.any():
        return None
    begins = np.append(True, ~follows)
    place = np.arange(len(record)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    begins |= place % l1.joined_stores == 0
    first = np.flatnonzero(begins)
    lengths = np.diff(np.append(first, len(record)))
    count = len(trace.record_pc)
    found = JoinedStores(np.zeros(count, np.int16), np.zeros(count, np.bool_), np.zeros(count, np.uint8))
    pattern = trace.record_pattern[record]
    for length in np.unique(lengths[lengths > 1]).tolist():
        members = first[lengths == length][:, None] + np.arange(length)
        kinds, example, of = np.unique(shape[members], axis=0, return_index=True, return_inverse=True)
        width = [[accesses[int(shapes.pc[s])].width_bytes for s in row] for row in kinds.tolist()]
        sent = np.array([_sent(trace, pattern[members[at]], w) for at, w in zip(example, width, strict=True)])
        found.sectors[record[members]], found.partial_lines[record[members]] = sent[of.reshape(-1)].transpose(1, 0, 2)
        found.joins[record[members]] = True
    return found


def _line_sets(shapes: Shapes, used: NDArray[np.int64], most_lines: int) -> NDArray[np.int64]:
    """Return a number of the set of lines that each of the shapes `used` touches, counted from the record's base; int64
    [shapes], -1 for more than `most_lines` lines and for other shapes."""
    coalesced, numbers = shapes.coalesced, dict[tuple[int, ...], int]()
    found = np.full(len(shapes.pc), -1, np.int64)
    for shape in used[coalesced.lines[used] <= most_lines].tolist():
        sectors = coalesced.sector_offset[coalesced.sector_start[shape] : coalesced.sector_start[shape + 1]]
        lines = tuple(np.unique(sectors // SECTORS_PER_LINE).tolist())
        found[shape] = numbers.setdefault(lines, len(numbers))
    return found


def _sent(trace: WarpTrace, patterns: NDArray[np.int64], width_bytes: list[int]) -> NDArray[np.int64]:
    """Return how many sectors of each of these stores are sent with an earlier one, and where one is the first of those
    that are sent together, in how many lines these write sectors in part: int64 [2, stores]. One that writes again what
    is to be sent is the first of others.

    patterns, width_bytes  of each store
    """
    found, first = np.zeros((2, len(width_bytes)), np.int64), 0
    written = np.zeros(0, np.int64)
    for i, (pattern, width) in enumerate(zip(patterns.tolist(), width_bytes, strict=True)):
        active = active_lanes(trace.patterns.active_mask[pattern : pattern + 1])[0]
        places = (trace.patterns.offsets_bytes[pattern][active][:, None] + np.arange(width)).reshape(-1)
        if np.isin(places, written).any():
            first, written = i, written[:0]
        found[0, i] = np.isin(np.unique(places >> SECTOR_SHIFT), written >> SECTOR_SHIFT).sum()
        written = np.union1d(written, places)
        sectors, held = np.unique(written >> SECTOR_SHIFT, return_counts=True)
        found[1, first] = len(np.unique(sectors[held < SECTOR_BYTES] << SECTOR_SHIFT >> LINE_SHIFT))
    return found
