"""Whole predictions: `analyze` in this process, and commands in processes of their own, as a user waits for them."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from bench_launches import Rate, launch_of

from gemmsim.api import analyze

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("size", [256, 4096])
@pytest.mark.parametrize("kernel", ["naive", "tiled", "warptiled", "async_pipelined", "tensorcore_pipelined"])
def test_analyze(kernel: str, size: int, rate: Rate) -> None:
    request = launch_of(kernel, size)
    report = rate(lambda: analyze(request, accesses=False), 1, "launches", rounds=3)
    assert report.verified.ok is not False  # type: ignore[attr-defined]


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("timer", [time.perf_counter, cpu_of_children], ids=["wall", "cpu"])
@pytest.mark.parametrize(
    "arguments", ["--help", "analyze --kernel tiled --size 256", "analyze --kernel tiled --size 4096 --gpu h200"]
)
def test_command(arguments: str, timer: Callable[[], float], benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark._timer = timer
    command = [sys.executable, "-m", "gemmsim", *arguments.split()]
    run = benchmark.pedantic(
        lambda: subprocess.run(command, capture_output=True, check=True), rounds=5, warmup_rounds=1
    )
    assert run.stdout
