"""Work beside other work of this process: machine code and most of NumPy run without Python's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def beside(work: Callable[[], T], worth: bool = True) -> Callable[[], T]:
    """Start `work` in another thread; the function returned waits for it and gives its result, or raises what it did.

    worth: whether it takes long enough for that; else, and where there is one CPU only, it runs when it is asked for.
    """
    if not worth:
        return work
    from gemmsim.support.processes import available_cpus  # only now: it imports what a small launch does without

    if available_cpus() < 2:
        return work
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # whatever it is, it belongs to whoever asks for the result
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result() -> T:
        thread.join()
        if raised:
            raise raised[0]
        return found[0]

    return result
