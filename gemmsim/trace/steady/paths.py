"""Says which threads of a warp execute what it does in a period of a loop, where others of its threads wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words


@dataclass(frozen=True)
class Path:
    """Threads of a warp that are together in all of a period.

    pc     micro-operation at which the period begins; None: it is not asked whether they come back to it
    mask   the threads
    holds  at which convergence barriers the other threads wait, by the words at which their rows begin
    """

    pc: int | None
    mask: int
    holds: frozenset[int] = frozenset()


def path_of(warp: NDArray[np.int64]) -> Path | None:
    """Return the one path of a warp that runs; None where there is none, or where others may run, too.

    warp  int64 [words.WARP_WORDS]
    """
    count, active = int(warp[words.PATH_COUNT]), int(warp[words.ACTIVE])
    rows = warp[words.PATHS_AT : words.PATHS_AT + count * words.PATH_WORDS].reshape(-1, words.PATH_WORDS).tolist()
    if active == 0 and count == 1:
        return Path(rows[0][words.PATH_PC], rows[0][words.PATH_MASK])
    waiting = [row for row in rows if row[words.PATH_REASON] == words.WAIT_CONVERGENCE]
    rows = [row for row in rows if row[words.PATH_REASON] != words.WAIT_CONVERGENCE]
    holds = frozenset(row[words.PATH_NEED] for row in waiting)
    if active and not rows:
        return Path(int(warp[words.PC]), active, holds)
    if not active and len(rows) == 1 and rows[0][words.PATH_REASON] == words.RUNNABLE:
        return Path(rows[0][words.PATH_PC], rows[0][words.PATH_MASK], holds)
    return None
