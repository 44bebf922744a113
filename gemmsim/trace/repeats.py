"""Says which parts of a trace stand for more than themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Repeat:
    """A part of what was recorded that came `times` times more, one after the other, at addresses that moved evenly.

    records, issued  (first, stop) of the records and of the instructions, in the order of execution
    moving           int64 [n, 3]: warp of the trace, instruction, and bytes by which its accesses to the GPU's memory
                     move each time; what is not among them comes again to the same places
    """

    records: tuple[int, int]
    issued: tuple[int, int]
    times: int
    moving: NDArray[np.int64]


@dataclass(frozen=True)
class Repeats:
    """For how many executions each item of a trace stands; those that stand for more moved evenly from one to the next.

    of_record   unsigned integers [records]
    of_issued   unsigned integers [issued] of each instruction of a stream; of these there may be tens of millions, so
                that they are held in as few bytes as they need
    step_bytes  int64 [records] by how many bytes accesses to the GPU's memory move from one to the next
    """

    of_record: NDArray[np.unsignedinteger]
    of_issued: NDArray[np.unsignedinteger]
    step_bytes: NDArray[np.int64]


def times_of(repeats: Sequence[tuple[tuple[int, int], int]], items: int) -> NDArray[np.unsignedinteger]:
    """Return for how many executions each of `items` stands, in as few bytes as hold that: ((first, stop), how many
    times more) of those repeated, which do not overlap."""
    times = np.ones(items, np.min_scalar_type(1 + max((more for _, more in repeats), default=0)))
    for (first, stop), more in repeats:
        times[first:stop] += more
    return times


def steps_of(
    repeats: Sequence[Repeat], record_pc: NDArray[np.int32], record_warp: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return `Repeats.step_bytes` of records in the order of execution, whose instructions and warps these are."""
    steps = np.zeros(len(record_pc), np.int64)
    most = np.array(
        [
            (record_warp.max(initial=0), record_pc.max(initial=0)),
            *(r.moving[:, :2].max(axis=0) for r in repeats if len(r.moving)),
        ]
    )
    of_each = np.zeros(most.max(axis=0) + 1, np.int64)
    for repeat in repeats:
        part, (warp, pc, step) = slice(*repeat.records), repeat.moving.T
        of_each[warp, pc] = step
        steps[part] = of_each[record_warp[part], record_pc[part]]
        of_each[warp, pc] = 0
    return steps
