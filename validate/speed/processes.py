"""Measures the time and memory of predictions, each in a fresh process, and the time of each step of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gemmsim.support.errors import GemmsimError

GOAL_SECONDS, GOAL_MB = 5.0, 1000.0  # most for predicting any kernel of the ladder, with warm caches, on two cores
STEPS_MODULE = f"{__package__}.steps"


@dataclass(frozen=True, slots=True)
class Run:
    """The time and memory that one process took.

    wall_s   wall-clock time
    cpu_s    CPU time, user and system
    peak_mb  the most resident memory, in 10^6 bytes
    failed   why there is no result; "" where there is one
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one prediction took, of a kernel of the ladder at M = N = K = size; a cell of the table."""

    kernel: str
    size: int
    run: Run


@dataclass(frozen=True, slots=True)
class Profile:
    """The steps of one prediction in order, each with its name and its CPU seconds."""

    kernel: str
    size: int
    gpu: str
    steps: tuple[tuple[str, float], ...]


def measured(command: Sequence[str], limit_s: float) -> Run:
    """Run a command, which is ended after `limit_s` seconds, and return what it took.

    This needs wait4, which Windows lacks. Linux counts the memory that this process has when it starts the command as
    the command's, so `peak_mb` is never less than this process's memory.
    """
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        timer = threading.Timer(limit_s, process.kill)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    unit = 1 if sys.platform == "darwin" else 1024  # bytes in a unit of ru_maxrss, see getrusage(2)
    failed = ""
    if process.returncode < 0:
        failed = f"over {limit_s:g} s" if wall_s >= limit_s else f"ended by signal {-process.returncode}"
    elif process.returncode:
        failed = lines[-1].removeprefix("error: ") if lines else f"exit status {process.returncode}"
    return Run(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6, failed)


def quickest(command: Sequence[str], rounds: int, limit_s: float) -> Run:
    """Run a command `rounds` times, and return the run with the least wall time.

    Where the first run fails, it is the only one. A later run that fails does not count.
    """
    best = measured(command, limit_s)
    for _ in range(rounds - 1):
        if best.failed:
            break
        best = min(best, measured(command, limit_s), key=lambda run: (bool(run.failed), run.wall_s))
    return best


def analyze_command(kernel: str, size: int, gpu: str) -> list[str]:
    """Return the command line that predicts a kernel of the ladder at M = N = K = size."""
    return [sys.executable, "-m", "gemmsim", "analyze", "--kernel", kernel, "--size", str(size), "--gpu", gpu]


def table(
    kernels: Sequence[str],
    sizes: Sequence[int],
    gpu: str,
    rounds: int,
    limit_s: float,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Cell]:
    """Predict each of `kernels` at each of `sizes`, and return the time and memory of each prediction.

    Before that, each kernel is predicted once at the smallest size, to fill all caches.
    """
    cells = []
    for kernel in kernels:
        measured(analyze_command(kernel, min(sizes), gpu), limit_s)
        for size in sizes:
            run = quickest(analyze_command(kernel, size, gpu), rounds, limit_s)
            progress(f"{kernel} {size}: {run.failed or f'{run.wall_s:.2f} s, {run.peak_mb:.0f} MB'}")
            cells.append(Cell(kernel, size, run))
    return cells


def profile(kernel: str, size: int, gpu: str, rounds: int) -> Profile:
    """Predict a kernel `rounds` times, each in a fresh process; return the steps of the run with the least CPU time.

    One more prediction is made first, to fill all caches, and does not count.
    """
    command = [sys.executable, "-m", STEPS_MODULE, kernel, str(size), gpu]
    found = []
    for _ in range(1 + rounds):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            raise GemmsimError(f"{kernel} at {size} cannot be profiled: {run.stderr.strip().splitlines()[-1]}")
        found.append([(str(name), float(seconds)) for name, seconds in json.loads(run.stdout)])
    best = min(found[1:], key=lambda steps: sum(seconds for _, seconds in steps))
    return Profile(kernel, size, gpu, tuple(best))
