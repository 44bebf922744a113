"""Rounds numbers so that what is lost in one is given to a later one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def whole_in_sum(numbers: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return whole numbers whose sums from the first one on are nearest to those of `numbers`."""
    sums = np.cumsum(numbers, dtype=np.float64)
    whole = np.rint(sums, out=sums).astype(np.int64)
    del sums  # there may be millions of numbers
    whole[1:] -= whole[:-1].copy()
    return whole
