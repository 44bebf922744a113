"""Starts worker processes, which end with the work at the latest. Ctrl-C ends them without a message from each."""

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
PATIENCE_S = 5.0  # from an interrupt until `leave_soon` ends the process


def leave_soon() -> None:
    """After an interrupt, end this process a few seconds from now if it has not ended by then.

    A worker that is ended while it hands over a result leaves a thread of its pool waiting for the rest of the result,
    and Python waits for that thread.
    """
    late = threading.Timer(PATIENCE_S, os._exit, (INTERRUPTED,))
    late.daemon = True
    late.start()


def available_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start a pool of `jobs` processes, none of which outlives the `with` block.

    They are spawned, as a fork would copy threads and locks.
    """
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_end_with_the_parent)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    pool.shutdown()


def map_unordered(call: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[tuple[Item, Result]]:
    """Yield (item, call(item)) for each item, as the results come from `jobs` processes.

    Where there is one job or one item, this process does the work.
    """
    if jobs <= 1 or len(items) <= 1:
        for item in items:
            yield item, call(item)
        return
    with workers(jobs) as pool:
        running = {pool.submit(call, item): item for item in items}
        for done in as_completed(running):
            yield running[done], done.result()


def _end_with_the_parent() -> None:
    """Let this worker end at once on Ctrl-C, which reaches the whole process group (the parent prints the message), and
    when the parent has ended, even if it was killed."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    threading.Thread(target=_outlive_no_parent, daemon=True).start()


def _outlive_no_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(INTERRUPTED)
