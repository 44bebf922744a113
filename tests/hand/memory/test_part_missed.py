"""From how many runs or lines a record's sectors come, against fractions worked out one record at a time."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.memory.serve import _part_missed

SHAPES = st.lists(st.tuples(st.integers(0, 32), st.integers(0, 64)), min_size=1, max_size=4)


@given(SHAPES, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 70)), max_size=9))
def test_as_large_a_share_of_the_parts_as_of_the_sectors(
    shapes: list[tuple[int, int]], records: list[tuple[int, int]]
) -> None:
    """Of shapes, each with so many parts and sectors, and records, each of a shape and with so many sectors from L2."""
    touched, sectors = np.array(shapes, np.int64).T
    of_record, l2 = np.array(records, np.int64).reshape(-1, 2).T
    of_record %= len(shapes)
    of = SimpleNamespace(coalesced=SimpleNamespace(sectors=sectors), of_record=of_record.astype(np.int32))
    expected = [
        ceil(int(touched[shape]) * min(Fraction(int(asked), max(int(sectors[shape]), 1)), Fraction(1)))
        for shape, asked in zip(of_record, l2, strict=True)
    ]
    assert _part_missed(l2.astype(np.uint16), of, touched).tolist() == expected
