"""Finding the steady loop of a warp's instruction stream, so that its middle iterations need not be simulated."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LEAST_COUNT = 4  # one iteration at either end, one measured between them, one to leave out


@dataclass(frozen=True, slots=True)
class Loop:
    """A stretch of a warp's stream, from position `start` on, in which the same `length` instructions are executed
    `count` times in a row. Behind one of these, the execution that recorded the stream left out `more` iterations.
    """

    start: int
    length: int
    count: int
    more: int = 0

    @property
    def total(self) -> int:
        return self.count + self.more

    @property
    def stop(self) -> int:
        return self.start + self.length * self.count


def find_loop(pcs: NDArray[np.integer]) -> Loop | None:
    """Find the loop whose middle iterations cover most of the stream `pcs`, the static indices of the instructions that
    a warp executes. Returns None where nothing repeats `LEAST_COUNT` times.

    An iteration runs from one passage over a backward branch to the next over the same branch, so an outer loop's
    iterations contain its inner loops. The first iteration, which is entered from above, and the last, which is left
    downwards, are not part of the loop.
    """
    back = np.flatnonzero(pcs[1:] <= pcs[:-1])
    best: Loop | None = None
    edges = pcs[back].astype(np.int64) << 32 | pcs[back + 1]
    for edge in np.unique(edges):
        starts = back[edges == edge] + 1
        for loop in _runs(pcs, starts):
            if loop.count >= LEAST_COUNT and (best is None or _middle(loop) > _middle(best)):
                best = loop
    return best


def _middle(loop: Loop) -> int:
    return loop.length * (loop.count - LEAST_COUNT + 1)


def _runs(pcs: NDArray[np.integer], starts: NDArray[np.intp]) -> list[Loop]:
    """Find the longest runs of equal iterations: iteration i has the positions [starts[i], starts[i + 1]) of `pcs`."""
    lengths = np.diff(starts)
    edges = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
    loops = []
    for first, stop in pairwise(edges):
        if stop - first < 2:
            continue
        length, start = int(lengths[first]), int(starts[first])
        rows = pcs[start : start + length * (stop - first)].reshape(stop - first, length)
        same = (rows[1:] == rows[:-1]).all(axis=1)
        for begin, end in pairwise([0, *(np.flatnonzero(~same) + 1).tolist(), stop - first]):
            if end - begin > 1:
                loops.append(Loop(start + begin * length, length, end - begin))
    return loops


def without_middle(loop: Loop, total: int, ends: int, middle: int) -> list[tuple[int, int]]:
    """Return the parts [start, stop) that remain of a stream of `total` instructions whose loop keeps only `ends` +
    `middle` of its iterations.

    Half of the `ends` iterations are the first and half the last of the loop. The `middle` ones come from its centre,
    where its state is steadiest.
    """
    if ends + middle >= loop.count:
        return [(0, total)]
    head = ends // 2
    tail = ends - head
    first = loop.start + (head + (loop.count - ends - middle) // 2) * loop.length
    parts = [
        (0, loop.start + head * loop.length),
        (first, first + middle * loop.length),
        (loop.stop - tail * loop.length, total),
    ]
    return [part for part in parts if part[0] < part[1]]
