"""Sorting of several columns, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.support.sorting import counted, distinct, new_rows, numbered, order_by, sorted_rows

WIDE = 1 << 61  # two columns of it do not fit one number of 63 bits


@given(
    st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([-WIDE, 0, 7, WIDE]), st.integers(0, 3)), max_size=30),
    st.booleans(),
)
def test_rows_are_sorted_as_numpy_sorts_them(rows: list[tuple[int, int, int]], narrow: bool) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    if narrow:
        table[:, 1] >>= 59
    columns = (table[:, 0], table[:, 1], table[:, 2].astype(np.int32))
    assert order_by(*columns).tolist() == np.lexsort(columns[::-1]).tolist()
    assert np.array_equal(np.stack(distinct(*columns), axis=1), np.unique(table, axis=0))
    assert np.stack(sorted_rows(*columns), axis=1).tolist() == sorted(table.tolist())
    found, number = numbered(*columns)
    assert np.array_equal(np.stack(found, axis=1), np.unique(table, axis=0))
    assert np.array_equal(np.stack(found, axis=1)[number], table)
    assert counted(*columns)[1].tolist() == np.unique(table, axis=0, return_counts=True)[1].tolist()


@pytest.mark.parametrize("span", [1 << 16, (1 << 16) - 1, 3])
@pytest.mark.parametrize("first", [-5, 0, (1 << 31) - (1 << 16) - 1])
def test_one_column_is_sorted_as_numpy_sorts_it(span: int, first: int) -> None:
    """Its least and its greatest number are `span` apart: of fewer than 2^16, bits are cut off."""
    column = (first + np.array([span, 0, 1, 0, span, 2, 1])).astype(np.int32)
    assert order_by(column).tolist() == np.argsort(column, kind="stable").tolist() == [1, 3, 2, 6, 5, 0, 4]
    assert order_by(column[:0]).tolist() == []


def test_a_row_is_new_where_any_column_changes() -> None:
    assert new_rows(np.array([1, 1, 1, 2, 2]), np.array([5, 5, 6, 6, 6])).tolist() == [True, False, True, True, False]
    assert new_rows(np.array([3, 3])).tolist() == [True, False]
    assert new_rows(np.zeros(0)).tolist() == []
