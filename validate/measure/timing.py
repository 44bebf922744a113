"""Measures the device time of a launch, in samples of many launches between two events, after a warm-up."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from .gpu import Gpu

# The warm-up launches before the first sample take this long in all, as clocks take milliseconds to rise from idle.
WARM_UP_US = 50_000.0
# The least duration of a sample: the resolution of events and the gaps between samples are then below 0.1 % of it.
SAMPLE_US = 2_000.0
# Launches shorter than this are replayed as a CUDA graph, as the host could not launch them one by one fast enough.
GRAPH_BELOW_US = 60.0
MAX_LAUNCHES = 600


@dataclass(frozen=True)
class Plan:
    """Says how the samples of one series of times are taken.

    graph  whether the launches of a sample are replayed as a CUDA graph
    """

    launches_per_sample: int
    graph: bool
    warm_up_samples: int


def plan(launch_us: float, copies: int) -> Plan:
    """Return the plan for launches of about `launch_us` that take turns on `copies` sets of operands.

    A CUDA graph replays the same launches each time, so a sample then has equally many launches on each set.
    """
    launches = min(MAX_LAUNCHES, max(1, math.ceil(SAMPLE_US / max(launch_us, 0.1))))
    graph = launch_us < GRAPH_BELOW_US
    if graph:
        launches = math.ceil(launches / copies) * copies
    warm_up = math.ceil(WARM_UP_US / (launches * max(launch_us, 0.1)))
    return Plan(launches, graph, min(max(1, warm_up), 50))


def measure(gpu: Gpu, launches: Sequence[Callable[[], None]], samples: int) -> dict[str, Any]:
    """Time a launch, and return a series of times for its record.

    launches[i] starts the kernel on the i-th set of operands; the sets take turns.
    """
    chosen = plan(estimate(gpu, launches[0]), len(launches))
    count = chosen.launches_per_sample
    turn = 0

    def launch_sample() -> None:
        nonlocal turn
        for _ in range(count):
            launches[turn % len(launches)]()
            turn += 1

    sample: Callable[[], None] = launch_sample
    as_graph = False
    if chosen.graph:
        try:
            sample, as_graph = gpu.graph(launch_sample), True
        except GemmsimError:  # a library cannot be captured, so its launches are plain, and the record says so
            turn = 0
    for _ in range(chosen.warm_up_samples):
        sample()
    pairs = []
    for _ in range(samples):
        start, stop = gpu.event(), gpu.event()
        gpu.record(start)
        sample()
        gpu.record(stop)
        pairs.append((start, stop))
    clocks = []
    while not gpu.done(pairs[-1][1]):  # the samples are queued; meanwhile the clock is read
        clocks.append(gpu.nvml.clock("sm"))
    gpu.synchronize()
    times = [gpu.elapsed_us(start, stop) / count for start, stop in pairs]
    series = summary(times)
    series |= {
        "launches_per_sample": count,
        "copies": len(launches),
        "method": "graph" if as_graph else "stream",
    }
    seen = [clock for clock in clocks if clock]
    if seen:
        series["sm_clock_mhz"] = [min(seen), statistics.median(seen), max(seen)]
    return series


def estimate(gpu: Gpu, launch: Callable[[], None]) -> float:
    """Return roughly how many microseconds a launch takes, by timing the second of two launches with events."""
    launch()
    start, stop = gpu.event(), gpu.event()
    gpu.record(start)
    launch()
    gpu.record(stop)
    gpu.synchronize()
    return gpu.elapsed_us(start, stop)


def summary(times_us: Sequence[float]) -> dict[str, Any]:
    """Return the median, the quartiles and the samples themselves, rounded to a tenth of a nanosecond."""
    ordered = [round(time, 4) for time in times_us]
    if len(ordered) > 1:
        low, middle, high = statistics.quantiles(ordered, n=4, method="inclusive")
    else:
        low = middle = high = ordered[0]
    return {
        "median_us": round(middle, 4),
        "quartiles_us": [round(low, 4), round(high, 4)],
        "samples_us": ordered,
        "samples": len(ordered),
    }


def copies_beyond_cache(set_bytes: int, l2_bytes: int, free_bytes: int) -> int:
    """Return how many sets of operands must take turns so that none is still in L2 at its next turn.

    The number is at least 2, even where one set alone exceeds L2. It is at most 512, and the sets must fit into half of
    the free memory. Where not even two sets fit, the number is 1.
    """
    wanted = max(2, math.ceil(2.5 * l2_bytes / set_bytes))
    return max(1, min(wanted, 512, int(0.5 * free_bytes) // set_bytes))
