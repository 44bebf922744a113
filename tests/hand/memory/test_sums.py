"""Weighted sums are those of np.bincount to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.memory.requests.sums import weighted_sums


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint16])
def test_items_are_added_in_their_order(dtype: type) -> None:
    """Sums of these weights would be others in another order."""
    rng = np.random.default_rng(1)
    number, weight = rng.integers(0, 7, 1000).astype(np.int32), rng.random(1000)
    values = rng.integers(0, 99, 1000).astype(dtype)
    sums = weighted_sums(number, weight, values, 9)
    assert sums.tolist() == np.bincount(number, weight * values, 9).tolist()
    assert sums.tolist() != weighted_sums(number[::-1].copy(), weight[::-1].copy(), values[::-1], 9).tolist()
    assert weighted_sums(number, weight, np.zeros(1000, dtype), 9).tolist() == [0.0] * 9
