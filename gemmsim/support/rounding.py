"""Rounds numbers so that what is lost in one is given to a later one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def whole_in_sum(numbers: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return whole numbers whose sums from the first one on are nearest to those of `numbers`."""
    return np.diff(np.rint(np.cumsum(numbers, dtype=np.float64)), prepend=0.0).astype(np.int64)
