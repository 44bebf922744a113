"""Finds which part of each array a block touches in each iteration of its loop over K."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.accesses.block_records import ArrayRecords, BlockRecords
from gemmsim.analysis.accesses.types import ArrayArgument, Phase, Rectangle
from gemmsim.trace.types import Patterns, active_lanes

MOST_PHASES = 64  # iterations shown; nobody steps through more by hand


def phases_of(
    touched: ArrayRecords,
    patterns: Patterns,
    arguments: Sequence[ArrayArgument],
    loop: range | None,
    iterations: int,
) -> tuple[Phase, ...]:
    """Split a block's accesses into phases: before the loop over K, each iteration of it, and after it.

    Phases that touch no array are left out.

    loop        indices of the instructions of the loop over K, None where there is none
    iterations  how many iterations of the loop each warp executes

    The trace does not say in which iteration a record was made. Where a warp executes an instruction n times an
    iteration, its record number `occurrence` is taken to belong to iteration (occurrence / n). Where a guard suppressed
    some of the accesses, the suppressed ones are taken to be the last accesses.
    """
    if not len(touched.array):
        return ()
    phase = _phase_numbers(touched.records, loop, iterations)
    last = iterations + 1  # 0 is before the loop
    shown = (phase < MOST_PHASES) | (phase >= last - 1)
    order, rows = _distinct(phase, touched, shown)
    bounds = _bounds(touched, rows, patterns, arguments)
    load, array, number = touched.load[rows], touched.array[rows], phase[rows]
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


def _phase_numbers(records: BlockRecords, loop: range | None, iterations: int) -> NDArray[np.int64]:
    """Number the phase of each record: 0 before the loop, 1 to `iterations` inside, `iterations` + 1 after it."""
    if loop is None or not iterations or not len(records.pc):
        return np.zeros(len(records.pc), np.int64)
    most = np.zeros(int(records.pc.max()) + 1, np.int64)  # by instruction: its records by the warp that made most
    np.maximum.at(most, records.pc, records.occurrence + 1)
    an_iteration = -(-most // iterations)
    inside = np.minimum(records.occurrence // an_iteration[records.pc], iterations - 1) + 1
    after = np.where(records.pc >= loop.stop, iterations + 1, inside)
    return np.where(records.pc < loop.start, 0, after)


def _distinct(
    phase: NDArray[np.int64], touched: ArrayRecords, shown: NDArray[np.bool_]
) -> tuple[list[int], NDArray[np.int64]]:
    """Group records by phase, array, and whether they load; leave out repeats of one access within a phase.

    Returns (the position in `indices` at which each group starts, `indices` of the records, group by group). Only
    records at which `shown`, bool [records], is true are looked at.
    """
    rows = np.flatnonzero(shown)
    records = touched.records
    columns = [touched.width, records.pattern, records.base, ~touched.load, touched.array, phase]
    values = np.stack([column[rows].astype(np.int64) for column in columns])
    order = np.lexsort(values)
    values, rows = values[:, order], rows[order]
    new = np.ones(len(rows), bool)
    new[1:] = (values[:, 1:] != values[:, :-1]).any(axis=0)
    group = np.ones(len(rows), bool)
    group[1:] = (values[3:, 1:] != values[3:, :-1]).any(axis=0)
    return np.flatnonzero(group[new]).tolist(), rows[new]


def _bounds(
    touched: ArrayRecords, rows: NDArray[np.int64], patterns: Patterns, arguments: Sequence[ArrayArgument]
) -> NDArray[np.int64]:
    """Return (first row, first column, last row, last column) that each record touches: int64 [len(rows), 4].

    The parameter `rows` holds indices of records. An array of more than two dimensions is taken as a matrix whose
    columns are its last dimension; a flat array has one row.
    """
    columns = np.array([a.shape[-1] for a in arguments], np.int64)[touched.array[rows]][:, None]
    items = np.array([a.item_bytes for a in arguments], np.int64)[touched.array[rows]][:, None]
    pattern = touched.records.pattern[rows]
    active = active_lanes(patterns.active_mask[pattern])
    first = (touched.records.base[rows] - touched.start[rows])[:, None] + patterns.offsets_bytes[pattern]
    last = first + np.maximum(touched.width[rows][:, None], items) - 1
    low, high = first // items, last // items
    top = np.iinfo(np.int64).max
    corners = [
        np.where(active, low // columns, top).min(axis=1),
        np.where(active, low % columns, top).min(axis=1),
        np.where(active, high // columns, -1).max(axis=1),
        np.where(active, high % columns, -1).max(axis=1),
    ]
    return np.stack(corners, axis=1).reshape(-1, 4)
