"""Errors that pass from one process to another."""

from __future__ import annotations

import pickle

import pytest

from gemmsim.support.errors import GemmsimError
from gemmsim.trace.stopped import Stopped


def test_an_error_with_more_than_a_message_comes_back_from_another_process() -> None:
    error = Stopped("out of bounds", 3, 7)
    error.printed = "hello"
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is Stopped and str(again) == "out of bounds"
    assert (again.status, again.block, again.printed, again.__notes__) == (3, 7, "hello", ["a note"])


def test_a_plain_one_does_too() -> None:
    again = pickle.loads(pickle.dumps(GemmsimError("size must be above 0")))
    assert type(again) is GemmsimError and again.args == ("size must be above 0",)
    with pytest.raises(GemmsimError, match="above 0"):
        raise again
