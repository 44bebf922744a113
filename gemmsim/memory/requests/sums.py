"""Adds up what the requests of each instruction stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.native_loops import native_loop

_add_weighted = native_loop("requests/sums_loop", "add_weighted")


def weighted_sums(
    number: NDArray[np.int32], weight: NDArray[np.float64], values: NDArray, numbers: int
) -> NDArray[np.float64]:
    """Return the sums of weight * value of the items with each number, added in their order: float64 [numbers].

    This is np.bincount(number, weight * values, numbers), which takes two arrays more of as many items, 8 bytes each.

    number   int32 [items] below `numbers`
    weight   float64 [items]
    values   [items] any numbers
    """
    sums = np.zeros(numbers)
    if values.any():
        _add_weighted(number, weight, np.ascontiguousarray(values), sums)
    return sums
