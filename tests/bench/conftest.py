"""Benchmarks: `make bench`. Outside the default run; the table of rates follows pytest-benchmark's own table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from gemmsim.api import Counted, count
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_request
from gemmsim.launch.request import AnalyzeRequest, Sampling

GPU = "h200"


@dataclass(frozen=True)
class Measured:
    """`amount` of `unit` in `seconds`, the median of the rounds."""

    name: str
    amount: float
    unit: str
    seconds: float


RATES = pytest.StashKey[list[Measured]]()
Rate = Callable[..., object]


@cache
def request_of(kernel: str, size: int, full: bool = False) -> AnalyzeRequest:
    return ladder_request(LadderCase(kernel, size, size, size), load_gpu(GPU), Sampling(full=full))


@cache
def counted(kernel: str, size: int, full: bool = False) -> Counted:
    """Executed and counted once, for all benchmarks that go on from there."""
    return count(request_of(kernel, size, full))


@pytest.fixture
def rate(request, benchmark) -> Rate:  # type: ignore[no-untyped-def]
    """rate(function, amount, unit): times `function`, which does `amount` of `unit` a call, in CPU seconds of this
    process, so that others on the machine count less. It is called once before, to compile what it needs."""
    benchmark._timer = time.process_time

    def measure(function: Callable[[], object], amount: float, unit: str, rounds: int = 7) -> object:
        benchmark.extra_info |= {"amount": amount, "unit": unit}
        result = benchmark.pedantic(function, rounds=rounds, warmup_rounds=1)
        if benchmark.stats is not None:  # None with --benchmark-disable
            found = Measured(request.node.name, amount, unit, benchmark.stats["median"])
            request.config.stash.setdefault(RATES, []).append(found)
        return result

    return measure


def pytest_terminal_summary(terminalreporter, config) -> None:  # type: ignore[no-untyped-def]
    rows = config.stash.get(RATES, [])
    if not rows:
        return
    terminalreporter.section("rates: median of the rounds, CPU time")
    width = max(len(row.name) for row in rows)
    for row in rows:
        each_second = row.amount / row.seconds
        per_second = f"{each_second:14,.{0 if each_second > 100 else 2}f} {row.unit}/s"
        terminalreporter.write_line(f"{row.name:{width}}  {per_second:44}  {row.amount:,.0f} in {row.seconds:.4f} s")
