"""Lets a block stop after given numbers of instructions, whatever budget it was lent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words


class Stops:
    """Counts down to the next stop of a block.

    counters  of the trace buffers
    wanted    yields after how many instructions the block is to stop; what it does between belongs to the stop before
    """

    def __init__(self, counters: NDArray[np.int64], wanted: Iterator[int]) -> None:
        self._counters, self._wanted = counters, wanted
        self._left: int | None = next(wanted, None)

    def run(self, go_on: Callable[[], int]) -> int:
        """Let the block go on, to the next stop at most; return its status, which is BUDGET at a stop."""
        if self._left is None:
            return go_on()
        lent = int(self._counters[words.BUDGET_LEFT])
        allowed = min(lent, self._left)
        self._counters[words.BUDGET_LEFT] = allowed
        try:
            return go_on()
        finally:
            ran = allowed - int(self._counters[words.BUDGET_LEFT])
            self._counters[words.BUDGET_LEFT], self._left = lent - ran, self._left - ran

    def reached(self) -> bool:
        """Whether the block is at a stop and has budget left. It may go on then: the next stop is known."""
        if self._left is None or self._counters[words.BUDGET_LEFT] <= 0:
            return False
        if self._left <= 0:
            self._left = next(self._wanted, None)
        return True
