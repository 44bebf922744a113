"""Work in another thread, and sorting of several columns."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.support.sorting import distinct, order_by
from gemmsim.support.threads import in_background


def test_work_runs_in_another_thread_where_it_is_worth_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemmsim.support.processes.available_cpus", lambda: 2)
    assert in_background(threading.get_ident)() != threading.get_ident()
    assert in_background(threading.get_ident, worth_a_thread=False)() == threading.get_ident()
    monkeypatch.setattr("gemmsim.support.processes.available_cpus", lambda: 1)
    assert in_background(threading.get_ident)() == threading.get_ident()


def test_it_has_begun_before_its_result_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemmsim.support.processes.available_cpus", lambda: 2)
    begun = threading.Event()
    result = in_background(lambda: begun.set() or "done")
    assert begun.wait(timeout=20)
    assert result() == "done"


def test_what_it_raises_reaches_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemmsim.support.processes.available_cpus", lambda: 2)
    result = in_background(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        result()


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
