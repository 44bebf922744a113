"""Rounds numbers so that what is lost in one is given to a later one."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

_AT_ONCE = 1 << 16


def whole_in_sum(numbers: NDArray[np.floating], dtype: DTypeLike = np.int64) -> NDArray:
    """Return whole numbers whose sums from the first one on are nearest to those of `numbers`, as integers of `dtype`.

    There may be millions of them, so the sums of all are never held at once.
    """
    whole, before = np.empty(len(numbers), dtype), 0.0
    for begin in range(0, len(numbers), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        sums = np.cumsum(np.append(before, numbers[part]))
        whole[part], before = np.diff(np.rint(sums)), sums[-1]
    return whole
