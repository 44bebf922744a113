"""What is rounded away from one number comes with a later one."""

import numpy as np

from gemmsim.support.rounding import whole_in_sum


def test_sums_are_kept() -> None:
    """Of four sectors each, 30 % merge: 1.2, 2.4, 3.6, 4.8 and 6 together are 1, 2, 4, 5 and 6."""
    assert whole_in_sum(np.full(5, 1.2, np.float32)).tolist() == [1, 1, 2, 1, 1]
    assert whole_in_sum(np.zeros(0)).tolist() == []
