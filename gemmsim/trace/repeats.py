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


class Issued:
    """For how many executions the instructions of streams stand. There may be tens of millions of them, in some
    thousands of parts that stand for as many each.

    repeats  of the instructions in the order of execution
    first    int64 [segments] number of each segment's first instruction in that order
    length   int64 [segments] of the segments, which follow one another in the order of streams
    """

    def __init__(self, repeats: Sequence[Repeat], first: NDArray[np.int64], length: NDArray[np.int64]) -> None:
        parts = sorted((*r.issued, r.times) for r in repeats if r.issued[0] < r.issued[1])
        self._begin, self._end, self._more = np.array([(0, 0, 0), *parts], np.int64).T
        more = self._more * (self._end - self._begin)
        self._more_before = np.cumsum(more) - more
        self._first, self._start = first, np.cumsum(length) - length
        executed = self._executed(first + length) - self._executed(first)
        self._before = np.cumsum(executed) - executed

    def _executed(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for how many executions stand the instructions before some, in the order of execution."""
        part = np.searchsorted(self._begin, numbers, side="right") - 1
        inside = np.minimum(numbers, self._end[part]) - self._begin[part]
        return numbers + self._more_before[part] + self._more[part] * inside

    def before(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for how many executions stand the instructions before some places, in the order of streams."""
        segment = np.maximum(np.searchsorted(self._start, places, side="right") - 1, 0)
        first = self._first[segment]
        return self._before[segment] + self._executed(first + places - self._start[segment]) - self._executed(first)


@dataclass(frozen=True)
class Repeats:
    """For how many executions each item of a trace stands; those that stand for more moved evenly from one to the next.

    of_record   unsigned integers [records]
    issued      of the instructions of streams
    step_bytes  signed integers [records] by how many bytes accesses to the GPU's memory move from one to the next
    """

    of_record: NDArray[np.unsignedinteger]
    issued: Issued
    step_bytes: NDArray[np.signedinteger]


def times_of(repeats: Sequence[tuple[tuple[int, int], int]], items: int) -> NDArray[np.unsignedinteger]:
    """Return for how many executions each of `items` stands, in as few bytes as hold that: ((first, stop), how many
    times more) of those repeated, which do not overlap."""
    times = np.ones(items, np.min_scalar_type(1 + max((more for _, more in repeats), default=0)))
    for (first, stop), more in repeats:
        times[first:stop] += more
    return times


def steps_of(
    repeats: Sequence[Repeat], record_pc: NDArray[np.int32], record_warp: NDArray[np.int32]
) -> NDArray[np.signedinteger]:
    """Return `Repeats.step_bytes` of records in the order of execution, whose instructions and warps these are."""
    longest = max((int(np.abs(r.moving[:, 2]).max(initial=0)) for r in repeats), default=0)
    steps: NDArray[np.signedinteger] = np.zeros(len(record_pc), np.int32 if longest < 1 << 31 else np.int64)
    most = np.array(
        [
            (record_warp.max(initial=0), record_pc.max(initial=0)),
            *(r.moving[:, :2].max(axis=0) for r in repeats if len(r.moving)),
        ]
    )
    of_each = np.zeros(most.max(axis=0) + 1, steps.dtype)
    for repeat in repeats:
        part, (warp, pc, step) = slice(*repeat.records), repeat.moving.T
        of_each[warp, pc] = step
        steps[part] = of_each[record_warp[part], record_pc[part]]
        of_each[warp, pc] = 0
    return steps
