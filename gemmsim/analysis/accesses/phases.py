"""The tiles that a block walks through: which part of each array it touches in each iteration of its loop over K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.accesses.types import ArrayArgument, Phase, Rectangle
from gemmsim.trace.types import Patterns, active_lanes

MOST_PHASES = 64  # iterations kept: enough to step through by hand


@dataclass(frozen=True)
class GlobalRecords:
    """The accesses of one block to array arguments; int64 [records] unless said otherwise.

    pc, pattern, base, occurrence   instruction, index into the patterns, byte address, and how many records of the same
                                    warp and instruction came before
    array      index of the argument among the array arguments; start: its address
    width      bytes a lane; load: bool, False for stores and atomics
    """

    pc: NDArray[np.int64]
    pattern: NDArray[np.int64]
    base: NDArray[np.int64]
    occurrence: NDArray[np.int64]
    array: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]
    load: NDArray[np.bool_]


def phases_of(
    records: GlobalRecords,
    patterns: Patterns,
    arguments: Sequence[ArrayArgument],
    loop: range | None,
    iterations: int,
) -> tuple[Phase, ...]:
    """What came before the loop, each iteration, and what came after; phases that touch nothing are left out.

    loop        instructions of the loop over K, None where there is none; iterations: of it, by each warp

    An instruction that a warp executes several times an iteration belongs to the iteration that its turn makes: where a
    guard kept some accesses from being made at all, they are taken to be the last ones.
    """
    phase = _phase_numbers(records, loop, iterations)
    last = iterations + 1  # 0 is before the loop
    kept = (phase < MOST_PHASES) | (phase >= last - 1)
    order, rows = _distinct(phase, records, kept)
    bounds = _bounds(records, rows, patterns, arguments)
    load, array, number = records.load[rows], records.array[rows], phase[rows]
    found: dict[int, list[Rectangle]] = {}
    for at, stop in zip(order, [*order[1:], len(rows)], strict=True):
        part = slice(at, stop)
        low, high = bounds[part, :2].min(axis=0), bounds[part, 2:].max(axis=0) + 1
        rectangle = Rectangle(
            argument=arguments[int(array[at])].position,
            op="ld" if load[at] else "st",
            rows=(int(low[0]), int(high[0])),
            columns=(int(low[1]), int(high[1])),
        )
        found.setdefault(int(number[at]), []).append(rectangle)
    return tuple(Phase(_label(p, iterations, loop), tuple(found[p])) for p in sorted(found))


def _label(phase: int, iterations: int, loop: range | None) -> str:
    if loop is None:
        return "the whole block"
    if phase == 0:
        return "before the loop over K"
    return "after the loop over K" if phase > iterations else f"iteration {phase} of {iterations}"


def _phase_numbers(records: GlobalRecords, loop: range | None, iterations: int) -> NDArray[np.int64]:
    """0 before the loop, 1 to `iterations` in it, one more after it."""
    if loop is None or not iterations or not len(records.pc):
        return np.zeros(len(records.pc), np.int64)
    most = np.zeros(int(records.pc.max()) + 1, np.int64)  # accesses of one warp, by instruction
    np.maximum.at(most, records.pc, records.occurrence + 1)
    an_iteration = -(-most // iterations)
    inside = np.minimum(records.occurrence // an_iteration[records.pc], iterations - 1) + 1
    after = np.where(records.pc >= loop.stop, iterations + 1, inside)
    return np.where(records.pc < loop.start, 0, after)


def _distinct(
    phase: NDArray[np.int64], records: GlobalRecords, kept: NDArray[np.bool_]
) -> tuple[list[int], NDArray[np.int64]]:
    """Records without repeats of one access within a phase, grouped by phase, argument and kind; starts of the groups
    and the records' indices."""
    rows = np.flatnonzero(kept)
    columns = [records.width, records.pattern, records.base, ~records.load, records.array, phase]
    values = np.stack([column[rows].astype(np.int64) for column in columns])
    order = np.lexsort(values)
    values, rows = values[:, order], rows[order]
    new = np.ones(len(rows), bool)
    new[1:] = (values[:, 1:] != values[:, :-1]).any(axis=0)
    group = np.ones(len(rows), bool)
    group[1:] = (values[3:, 1:] != values[3:, :-1]).any(axis=0)
    return np.flatnonzero(group[new]).tolist(), rows[new]


def _bounds(
    records: GlobalRecords, rows: NDArray[np.int64], patterns: Patterns, arguments: Sequence[ArrayArgument]
) -> NDArray[np.int64]:
    """First row, first column, last row, last column that each record touches: int64 [len(rows), 4].

    Arrays of more than two dimensions are taken as matrices of their last one; flat ones have one row.
    """
    columns = np.array([a.shape[-1] for a in arguments], np.int64)[records.array[rows]][:, None]
    items = np.array([a.item_bytes for a in arguments], np.int64)[records.array[rows]][:, None]
    pattern = records.pattern[rows]
    active = active_lanes(patterns.active_mask[pattern])
    first = (records.base[rows] - records.start[rows])[:, None] + patterns.offsets_bytes[pattern]
    last = first + np.maximum(records.width[rows][:, None], items) - 1
    low, high = first // items, last // items
    top = np.iinfo(np.int64).max
    corners = [
        np.where(active, low // columns, top).min(axis=1),
        np.where(active, low % columns, top).min(axis=1),
        np.where(active, high // columns, -1).max(axis=1),
        np.where(active, high % columns, -1).max(axis=1),
    ]
    return np.stack(corners, axis=1).reshape(-1, 4)
