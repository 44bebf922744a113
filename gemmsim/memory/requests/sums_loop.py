"""The compiled loop of `gemmsim.memory.requests.sums`."""

from __future__ import annotations

import numpy as np


def add_weighted(number, weight, values, sums):  # type: ignore[no-untyped-def]
    """Add weight * value of each item to the element of `sums`, float64, that `number` says."""
    for i in range(len(number)):
        sums[number[i]] += weight[i] * np.float64(values[i])
