"""Stores of a warp to the same lines one after another: L1 sends what they write to L2 together.

A thread that writes 16 bytes by four stores of four bytes touches each sector four times. On an H200 one warp alone
sends each sector once, whatever time lies between the stores, as long as they touch fewer than 32 lines. Other warps'
stores come between: two warps join what they store to 8 lines each, four what they store to 7, and nothing of 16 and 8;
stores of one and two bytes a lane count twice (own microbenchmark, tests/records/h200_stored_pieces.json). So stores of
the sub-partitions reach L1 in turn, and what was stored to waits there until stores to `L1.joined_lines` others have
come. Where a sub-partition has several warps, another one's stores come between by chance, the more often the more
lines are stored to: without a pause between the stores of a warp as often as `L1.joined_lines` would be filled, with
multiplications between them less. Here a share of the stores is sent apart: the power `L1.joined_growth` of how full
four warps make it. Warps that load before they store come to their stores one by one: up to five lines nearly all are
joined, and then ever fewer (`L1.joined_behind_loads`). Of those that store behind a barrier, more go apart than here.

Stores of different warps to the same sectors are joined there, too, and those of kernels that load what they store
before: of study records 0.13 to 0.9 of the sectors are sent that are sent here. That is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.coalescer import LINE_SHIFT, SECTOR_BYTES, SECTOR_SHIFT, SECTORS_PER_LINE
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.trace.types import WarpTrace, active_lanes

_MOST_STORES = 32  # that are looked at together
_GOLDEN = 0.6180339887498949  # multiples of it lie evenly between whole numbers, so any share of the stores is hit


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


def joined_stores(
    trace: WarpTrace, shapes: Shapes, accesses: dict[int, Access], gpu: GpuSpec, warps: int
) -> JoinedStores | None:
    """Find the stores of a trace that are sent together; None where there are none.

    warps  that an SM holds at once
    """
    stores = [index for index, access in accesses.items() if access.space == "global" and access.op == "st"]
    record = np.flatnonzero(np.isin(trace.record_pc, stores))
    shape, base = shapes.of_record[record], trace.record_base[record]
    warp = np.searchsorted(trace.record_start, record, side="right")
    lines = _line_sets(shapes, np.unique(shape), gpu.l1.joined_lines)[shape]
    follows = (np.diff(warp) == 0) & (base[1:] == base[:-1]) & (lines[1:] == lines[:-1]) & (lines[1:] >= 0)
    between = shapes.coalesced.lines[shape].astype(np.float64)
    narrow = [index for index in stores if accesses[index].width_bytes < gpu.l1.joined_lane_bytes]
    between *= np.where(np.isin(trace.record_pc[record], narrow), 2, 1)
    loads = any(access.op != "st" and access.space == "global" for access in accesses.values())
    follows &= ~_apart(between[1:], np.cumsum(follows), gpu, warps, loads)
    if not follows.any():
        return None
    begins = np.append(True, ~follows)
    place = np.arange(len(record)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    begins |= place % _MOST_STORES == 0
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


def _apart(
    between: NDArray[np.float64], number: NDArray[np.int64], gpu: GpuSpec, warps: int, loads: bool
) -> NDArray[np.bool_]:
    """Return which stores, of those that follow one to the same lines, are sent apart from it: bool [stores].

    between  lines that another warp's store of the same kind takes
    number   how many follow one to the same lines up to this one
    loads    whether the launch loads from global memory, too
    """
    parts, most = gpu.sm.sub_partitions, gpu.l1.joined_lines
    if warps <= parts:
        return between * warps >= most
    if loads:
        all_join, none_joins = gpu.l1.joined_behind_loads
        share: NDArray[np.float64] = (between - all_join) / (none_joins - all_join)
    else:
        full = np.clip((between - 1) * parts / (most - parts), 0.0, 1.0)
        share = full**gpu.l1.joined_growth
    return (number * _GOLDEN) % 1.0 < share


def _line_sets(shapes: Shapes, used: NDArray[np.int64], below: int) -> NDArray[np.int64]:
    """Return a number of the set of lines that each of the shapes `used` touches, counted from the record's base; int64
    [shapes], -1 for as many lines as `below` and more and for other shapes."""
    coalesced, numbers = shapes.coalesced, dict[tuple[int, ...], int]()
    found = np.full(len(shapes.pc), -1, np.int64)
    for shape in used[coalesced.lines[used] < below].tolist():
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
