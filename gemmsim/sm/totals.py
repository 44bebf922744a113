"""Defines what a simulation of one SM counts, and adds multiples of such counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Totals:
    """What a simulation counted on one SM.

    cycles        until the last warp's exit
    stall_cycles  float64 [instructions, len(STALL_REASONS)] warp cycles by the instruction waiting to issue
    issued        float64 [instructions] warp instructions
    busy_cycles   pipe -> cycles busy, average of the sub-partitions; "lsu" is the data stage that loads and stores use
    block_ends    float64 [blocks] cycle at which each block has left, ascending
    before_tensor, after_tensor  cycles before the first matrix instruction that lowers the clock, and after the end of
                  the last one; infinity and 0 where there is none. Sums and multiples keep those of the first summand,
                  because what is repeated lies between.
    """

    cycles: float
    stall_cycles: NDArray[np.float64]
    issued: NDArray[np.float64]
    busy_cycles: dict[str, float]
    block_ends: NDArray[np.float64]
    before_tensor: float = inf
    after_tensor: float = 0.0

    def plus(self, other: Totals, times: float = 1.0) -> Totals:
        """Return the sum of these totals and `times` those of `other`."""
        busy = {pipe: cycles + times * other.busy_cycles[pipe] for pipe, cycles in self.busy_cycles.items()}
        return Totals(
            self.cycles + times * other.cycles,
            self.stall_cycles + times * other.stall_cycles,
            self.issued + times * other.issued,
            busy,
            self.block_ends + times * other.block_ends,
            self.before_tensor,
            self.after_tensor,
        )

    def scaled(self, factor: float) -> Totals:
        return self.plus(self, factor - 1.0)
