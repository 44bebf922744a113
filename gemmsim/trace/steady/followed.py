"""Describes warps of a block that execute the same, as what is proved of them is asked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace.steady.rows import Rows


class Followed(NamedTuple):
    """Warps of a block, behind a period, that execute the same.

    warps        their numbers
    first, step  uint32 [warps, words]: their registers, and by how much these move in a period; of the rows that may
                 change, where `whole` has all of them
    blocks       int32 [warps, words]: what is known of each word in other blocks; None where nothing is asked of them
    whole        of all warps and rows of the block, what `first` and `blocks` are of some; None where they have all
    """

    warps: tuple[int, ...]
    first: NDArray[np.uint32]
    step: NDArray[np.uint32]
    blocks: NDArray[np.int32] | None
    whole: tuple[NDArray[np.uint32], NDArray[np.int32] | None] | None = None

    def one(self, n: int) -> Followed:
        """Only the n-th of them."""
        row = slice(n, n + 1)
        blocks = None if self.blocks is None else self.blocks[row]
        return Followed(self.warps[row], self.first[row], self.step[row], blocks, self.whole)

    def of_all_rows(self, rows: Rows | None) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int32] | None]:
        """Return `first`, `step` and `blocks` of all rows. `rows`: those of which this has them."""
        if self.whole is None or rows is None:
            return self.first, self.step, self.blocks
        registers, shadow = self.whole
        warps = list(self.warps)
        blocks = None if self.blocks is None or shadow is None else shadow[warps]
        return registers[warps], rows.among(self.step, registers.shape[1]), blocks
