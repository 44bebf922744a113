"""Runs a computation in a thread of its own: machine code and most of NumPy run without Python's global lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T], worth_a_thread: bool = True) -> Callable[[], T]:
    """Start `work` in another thread. The function returned waits for it and returns its result or raises its error.

    worth_a_thread  whether `work` takes longer than starting a thread; if not, or if there is only one CPU, `work` runs
                    when its result is asked for
    """
    if not worth_a_thread:
        return work
    from gemmsim.support.processes import available_cpus  # imported here because a small launch does without it

    if available_cpus() < 2:
        return work
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # any error is raised where the result is asked for
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result() -> T:
        thread.join()
        if raised:
            raise raised[0]
        return found[0]

    return result
