"""Work in processes of their own: none outlives the work, and Ctrl-C ends them without a word."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

INTERRUPTED = 130  # exit status after Ctrl-C: 128 + SIGINT
PATIENCE_S = 5.0


def leave_soon() -> None:
    """After an interrupt: end this process a few seconds from now, if it has not ended by then.

    A worker that was ended while it handed a result over leaves its pool's thread waiting for the rest of it, and
    Python waits for that thread.
    """
    late = threading.Timer(PATIENCE_S, os._exit, (INTERRUPTED,))
    late.daemon = True
    late.start()


def available_cpus() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes (a fork would copy threads and locks of this one), none of which outlives the block."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_end_at_once_on_interrupt)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    pool.shutdown()


def map_unordered(call: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[tuple[Item, Result]]:
    """(item, call(item)) for each item, as the results come; in this process where there is one job or one item."""
    if jobs <= 1 or len(items) <= 1:
        for item in items:
            yield item, call(item)
        return
    with workers(jobs) as pool:
        running = {pool.submit(call, item): item for item in items}
        for done in as_completed(running):
            yield running[done], done.result()


def _end_at_once_on_interrupt() -> None:
    """Ctrl-C reaches the whole process group; the parent says what there is to say."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
