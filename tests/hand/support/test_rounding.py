"""What is rounded away from one number comes with a later one."""

import numpy as np

from gemmsim.support.rounding import whole_in_sum


def test_sums_are_kept() -> None:
    """Of four sectors each, 30 % merge: 1.2, 2.4, 3.6, 4.8 and 6 together are 1, 2, 4, 5 and 6."""
    assert whole_in_sum(np.full(5, 1.2, np.float32)).tolist() == [1, 1, 2, 1, 1]
    assert whole_in_sum(np.zeros(0)).tolist() == []


def test_sums_of_many_are_those_of_all_at_once() -> None:
    """Sums are taken of some numbers at a time."""
    numbers = np.random.default_rng(1).random((1 << 17) + 5, np.float32)
    whole = whole_in_sum(numbers, np.int32)
    assert whole.dtype == np.int32
    assert np.array_equal(np.cumsum(whole), np.rint(np.cumsum(numbers, dtype=np.float64)))
