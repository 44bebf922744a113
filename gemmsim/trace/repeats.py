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
    """

    records: tuple[int, int]
    issued: tuple[int, int]
    times: int


@dataclass(frozen=True)
class Repeats:
    """For how many executions each item of a trace stands; those that stand for more moved evenly from one to the next.

    of_record  int64 [records]
    of_issued  int64 [issued] of each instruction of a stream
    """

    of_record: NDArray[np.int64]
    of_issued: NDArray[np.int64]


def times_of(repeats: Sequence[tuple[tuple[int, int], int]], items: int) -> NDArray[np.int64]:
    """Return for how many executions each of `items` stands: ((first, stop), how many times more) of those repeated."""
    times = np.ones(items, np.int64)
    for (first, stop), more in repeats:
        times[first:stop] += more
    return times
