"""Describes warps of a block that execute the same, as what is proved of them is asked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Followed(NamedTuple):
    """Warps of a block, behind a period, that execute the same.

    warps        their numbers
    first, step  uint32 [warps, words]: their registers, and by how much these move in a period; of the rows that may
                 change, where `whole` has all of them
    blocks       int32 [warps, words]: what is known of each word in other blocks; None where nothing is asked of them
    whole        uint32 [warps of the block, words of all rows]: its registers; None where `first` has all rows
    """

    warps: tuple[int, ...]
    first: NDArray[np.uint32]
    step: NDArray[np.uint32]
    blocks: NDArray[np.int32] | None
    whole: NDArray[np.uint32] | None = None

    def one(self, n: int) -> Followed:
        """Only the n-th of them."""
        row = slice(n, n + 1)
        blocks = None if self.blocks is None else self.blocks[row]
        return Followed(self.warps[row], self.first[row], self.step[row], blocks, self.whole)

    def of_all_rows(self) -> NDArray[np.uint32]:
        """Return `first` of all rows."""
        return self.first if self.whole is None else self.whole[list(self.warps)]
