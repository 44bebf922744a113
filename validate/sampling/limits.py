"""Ends a prediction that takes too long or too much memory, so that the others of a run go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from gemmsim.support.errors import GemmsimError

MEMORY_BYTES = 6 << 30


@contextmanager
def limits(seconds: int) -> Iterator[None]:
    """Raise GemmsimError in the `with` block after `seconds` of CPU time, and MemoryError where it takes more than
    MEMORY_BYTES of addresses beyond those that the process has already.

    Needs a POSIX system and the main thread of the process. The block must return to Python now and then.
    """
    import resource

    def late(_number: int, _frame: FrameType | None) -> None:
        raise GemmsimError(f"given up after {seconds} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, late)
    resource.setrlimit(resource.RLIMIT_AS, (_addresses_held() + MEMORY_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _addresses_held() -> int:
    """Return how many bytes of addresses this process has; 0 where Linux's /proc is not there."""
    held = Path("/proc/self/statm")
    return int(held.read_text(encoding="utf-8").split()[0]) * os.sysconf("SC_PAGE_SIZE") if held.exists() else 0
