"""Works out from a trace which allocations a launch reads, and which of their bytes it stores to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.memory.requests.access import Access, access_of
from gemmsim.programs.allocations import Allocation
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS
from gemmsim.trace.types import Relation, WarpTrace, active_lanes

_READS = frozenset({"ld", "ldgsts", "tma_ld", "atom", "red", "tma_red"})
_STORES = frozenset({"st", "tma_st", "atom", "red", "tma_red"})
_MOST_PLACES = 20_000_000  # of records in blocks that are looked at one by one, about a second


@dataclass(frozen=True)
class Stores:
    """The stores of a launch.

    rows                        int64 [stores, 5] each distinct store of an executed block: number of that block, mover,
                                base, pattern, bytes a lane
    offsets_bytes, active_mask  as of `Patterns`
    relation                    what the blocks did that were not executed; None where all were
    """

    rows: NDArray[np.int64]
    offsets_bytes: NDArray[np.int64]
    active_mask: NDArray[np.uint32]
    relation: Relation | None

    def mask(self, address: int, size: int) -> NDArray[np.bool_]:
        """Return which of `size` bytes from a device address on are stored to, bool [size]."""
        stored = np.zeros(size, np.bool_)
        for pattern, width in np.unique(self.rows[:, 3:], axis=0).tolist():
            of_shape = self.rows[(self.rows[:, 3:] == (pattern, width)).all(axis=1)]
            lanes = self.offsets_bytes[pattern][active_lanes(self.active_mask[pattern])]
            places = np.concatenate([base + _moved(self.relation, *key) for key, base in _by_mover(of_shape)])
            first = (np.unique(places)[:, None] + np.unique(lanes) - address).reshape(-1)
            first = first[(first > -width) & (first < size)]
            for byte in range(width):
                at = first + byte
                stored[at[(at >= 0) & (at < size)]] = True
        return stored


@dataclass(frozen=True)
class Footprint:
    """What a launch does with the allocations that it can reach, by their positions.

    reads   those that it reads or may read
    writes  those that it stores to
    stores  which bytes it stores to; None where that is known only roughly, as of bulk copies
    """

    reads: frozenset[int]
    writes: frozenset[int]
    stores: Stores | None

    @property
    def in_place(self) -> bool:
        """Whether it reads memory that it stores to, so that doing it twice may not be the same as doing it once."""
        return bool(self.reads & self.writes)


def footprint_of(program: Program, trace: WarpTrace, reached: Sequence[Allocation]) -> Footprint:
    """Return the footprint of a launch whose trace tells of every block. `reached` is ascending by address.

    Tensor maps in memory leave no record when they are read. So of a kernel with bulk copies, memory that it can reach
    and does nothing else with counts as read.
    """
    accesses = {number: found for number, one in enumerate(program.instructions) if (found := access_of(one))}
    accesses = {number: one for number, one in accesses.items() if not one.on_chip}
    reads = _touched(trace, [n for n, one in accesses.items() if one.op in _READS], accesses, reached)
    stores = [number for number, one in accesses.items() if one.op in _STORES]
    writes = _touched(trace, stores, accesses, reached)
    bulk = any(one.bulk for one in accesses.values())
    if bulk:
        reads |= set(range(len(reached))) - writes
    exact = not any(accesses[number].bulk for number in stores)
    return Footprint(frozenset(reads), frozenset(writes), _stores(trace, stores, accesses) if exact else None)


def _touched(
    trace: WarpTrace, instructions: Iterable[int], accesses: dict[int, Access], reached: Sequence[Allocation]
) -> set[int]:
    """Return the positions of the allocations that these instructions touch, in whatever block."""
    rows = _rows(trace, instructions, accesses)
    if not len(rows) or not reached:
        return set()
    starts = np.array([one.address for one in reached])
    ends = starts + np.array([one.size for one in reached])
    block, mover, base, pattern, width = rows.T
    lanes = active_lanes(trace.patterns.active_mask)
    offsets = trace.patterns.offsets_bytes
    low = base + np.where(lanes, offsets, np.iinfo(np.int64).max).min(axis=1)[pattern]
    high = base + np.where(lanes, offsets, 0).max(axis=1)[pattern] + width
    found: set[int] = set()
    least, most = _bounds(trace.relation, rows)
    first = np.searchsorted(ends, low + least, side="right")
    apart = np.searchsorted(starts, high + most, side="left") - first != 1
    found |= set(np.unique(first[~apart]).tolist())
    places, looked_at = 0, np.unique(np.stack([block, mover, low, high], axis=1)[apart], axis=0)
    for leader, way, begin, end in looked_at.tolist():
        moved = _moved(trace.relation, leader, way)
        places += len(moved)
        if places > _MOST_PLACES:
            return set(range(len(reached)))
        from_, to = (
            np.searchsorted(ends, begin + moved, side="right"),
            np.searchsorted(starts, end + moved, side="left"),
        )
        for some, behind in np.unique(np.stack([from_, to], axis=1), axis=0).tolist():
            found |= set(range(some, behind))
    return found


def _rows(trace: WarpTrace, instructions: Iterable[int], accesses: dict[int, Access]) -> NDArray[np.int64]:
    """Return leader, mover, base, pattern and bytes a lane of each distinct access of global memory."""
    chosen = np.zeros(trace.executed.shape[1], np.int64)
    for number in instructions:
        chosen[number] = accesses[number].width_bytes
    width = chosen[trace.record_pc]
    records = np.flatnonzero((width > 0) & (trace.record_base >= np.uint64(FIRST_ADDRESS)))
    warp = np.searchsorted(trace.record_start, records, side="right") - 1
    mover = trace.relation.record_mover[records] if trace.relation else np.zeros(len(records), np.int64)
    block = warp // trace.warps_per_block if trace.relation else np.zeros(len(records), np.int64)
    base, pattern = trace.record_base[records].astype(np.int64), trace.record_pattern[records]
    rows = np.stack([block, mover, base, pattern, width[records]], axis=1).astype(np.int64)
    return np.unique(rows, axis=0) if len(rows) else rows


def _moved(relation: Relation | None, leader: int, mover: int) -> NDArray[np.int64]:
    """Return the distinct distances in bytes from the leader's address to those of the blocks that are like it."""
    if relation is None:
        return np.zeros(1, np.int64)
    return np.unique(relation.offset_bytes[mover, relation.like == leader])


def _bounds(relation: Relation | None, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each row the least and the most of the distances that `_moved` returns."""
    least, most = np.zeros((2, len(rows)), np.int64)
    keys, number = np.unique(rows[:, :2], axis=0, return_inverse=True)
    for position, (leader, mover) in enumerate(keys.tolist()):
        moved = _moved(relation, leader, mover)
        here = number.reshape(-1) == position
        least[here], most[here] = moved.min(), moved.max()
    return least, most


def _by_mover(rows: NDArray[np.int64]) -> Iterable[tuple[tuple[int, int], int]]:
    return (((leader, mover), base) for leader, mover, base, *_ in rows.tolist())


def _stores(trace: WarpTrace, instructions: Iterable[int], accesses: dict[int, Access]) -> Stores:
    rows, patterns = _rows(trace, instructions, accesses), trace.patterns
    return Stores(rows, patterns.offsets_bytes, patterns.active_mask, trace.relation)
