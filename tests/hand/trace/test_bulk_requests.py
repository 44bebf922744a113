"""With how many requests to L2 a row is copied in bulk, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.trace.engine.bulk_copies import requests_of


@pytest.mark.parametrize(
    ("begin", "size", "requests"),
    [
        (0, 128, 1),  # a line
        (0, 256, 2),
        (32, 128, 2),  # three sectors of one, one of the next
        (96, 64, 2),
        (32, 96, 1),
        (32, 224, 2),
        (16, 128, 3),  # half a sector at each end, three between
        (48, 128, 4),  # the same, and those between are in two lines
        (16, 256, 4),
        (0, 16, 1),  # half a sector
        (16, 16, 1),
        (0, 48, 2),
        (16, 48, 2),
        (16, 32, 2),  # two halves and nothing between
        (112, 32, 2),  # the same in two lines
        (8, 16, 1),  # within a sector
    ],
)
@pytest.mark.parametrize("line", [0, 5])
def test_requests_of_a_row(begin: int, size: int, requests: int, line: int) -> None:
    assert requests_of(np.uint64(128 * line + begin), np.int64(size)) == requests
