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
    moving           instructions whose accesses are elsewhere each time; all others come again to the same places
    """

    records: tuple[int, int]
    issued: tuple[int, int]
    times: int
    moving: NDArray[np.int64]


@dataclass(frozen=True)
class Repeats:
    """For how many executions each item of a trace stands; those that stand for more moved evenly from one to the next.

    of_record  int64 [records]
    of_issued  int64 [issued] of each instruction of a stream
    places     int64 [records] how many accesses to different places each stands for: one where the access is always at
               the same place
    """

    of_record: NDArray[np.int64]
    of_issued: NDArray[np.int64]
    places: NDArray[np.int64]


def times_of(repeats: Sequence[tuple[tuple[int, int], int]], items: int) -> NDArray[np.int64]:
    """Return for how many executions each of `items` stands: ((first, stop), how many times more) of those repeated."""
    times = np.ones(items, np.int64)
    for (first, stop), more in repeats:
        times[first:stop] += more
    return times


def places_of(repeats: Sequence[Repeat], record_pc: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return `Repeats.places` of records in the order of execution, of which these are the instructions."""
    places = np.ones(len(record_pc), np.int64)
    for repeat in repeats:
        part = slice(*repeat.records)
        places[part] += np.where(np.isin(record_pc[part], repeat.moving), repeat.times, 0)
    return places
