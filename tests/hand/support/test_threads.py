"""Work in another thread."""

from __future__ import annotations

import threading

import pytest

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
