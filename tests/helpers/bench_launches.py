"""Launches that the benchmarks time, each executed and counted once for all benchmarks that go on from there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gemmsim.api import Counted, count
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import LaunchSpec, Settings

GPU = "h200"

Rate = Callable[..., object]  # the fixture `rate` of tests/conftest.py


@cache
def launch_of(kernel: str, size: int, full: bool = False) -> LaunchSpec:
    """A rung on an H200 at M = N = K = `size`; `full` executes every block."""
    return ladder_launch(LadderCase(kernel, size, size, size), load_gpu(GPU), Settings(full=full))


@cache
def counted(kernel: str, size: int, full: bool = False) -> Counted:
    """The launch of `launch_of`, executed and counted."""
    return count(launch_of(kernel, size, full))
