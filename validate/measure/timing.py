"""Device time of a launch: event pairs around many launches, in samples, after a warm-up."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gemmsim.support.errors import GemmsimError

SAMPLES = 25
WARM_UP_US = 50_000.0  # of work before the first sample: clocks rise from idle in milliseconds
SAMPLE_US = 2_000.0  # a sample's length, where the launch is shorter: event resolution and gaps are then below 0.1 %
GRAPH_BELOW_US = 60.0  # launches shorter than this come as a graph: the host could not launch them fast enough
MAX_LAUNCHES = 600


class Clocked(Protocol):
    """What timing needs of a GPU (see `gpu.Gpu`)."""

    nvml: Any

    def event(self) -> Any: ...
    def record(self, event: Any) -> None: ...
    def elapsed_us(self, start: Any, stop: Any) -> float: ...
    def done(self, event: Any) -> bool: ...
    def synchronize(self) -> None: ...
    def graph(self, enqueue: Callable[[], None]) -> Callable[[], None]: ...


@dataclass(frozen=True)
class Plan:
    """How one series is taken."""

    launches_per_sample: int
    graph: bool
    warm_up_samples: int


def plan(launch_us: float, copies: int) -> Plan:
    """For launches of about `launch_us` that take `copies` sets of operands in turn.

    A graph replays the same launches each time, so it holds whole rounds of the copies.
    """
    launches = min(MAX_LAUNCHES, max(1, math.ceil(SAMPLE_US / max(launch_us, 0.1))))
    graph = launch_us < GRAPH_BELOW_US
    if graph:
        launches = math.ceil(launches / copies) * copies
    warm_up = math.ceil(WARM_UP_US / (launches * max(launch_us, 0.1)))
    return Plan(launches, graph, min(max(1, warm_up), 50))


def measure(gpu: Clocked, launches: Sequence[Callable[[], None]], samples: int = SAMPLES) -> dict[str, Any]:
    """A record's series: launches[i] starts the kernel on the i-th set of operands, and they take turns."""
    chosen = plan(estimate(gpu, launches[0]), len(launches))
    count = chosen.launches_per_sample
    turn = 0

    def some() -> None:
        nonlocal turn
        for _ in range(count):
            launches[turn % len(launches)]()
            turn += 1

    sample: Callable[[], None] = some
    as_graph = False
    if chosen.graph:
        try:
            sample, as_graph = gpu.graph(some), True
        except GemmsimError:  # a library that cannot be captured: plain launches, and the record says so
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
    while not gpu.done(pairs[-1][1]):  # the samples are queued; meanwhile, see how fast the GPU runs
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


def estimate(gpu: Clocked, launch: Callable[[], None]) -> float:
    """Microseconds of a launch, roughly: the second one, alone between two events."""
    launch()
    start, stop = gpu.event(), gpu.event()
    gpu.record(start)
    launch()
    gpu.record(stop)
    gpu.synchronize()
    return gpu.elapsed_us(start, stop)


def summary(times_us: Sequence[float]) -> dict[str, Any]:
    """Median, quartiles and the samples themselves, to a tenth of a nanosecond."""
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
    """Sets of operands after which none is left in L2: two when one alone exceeds it, fewer than half the memory."""
    wanted = max(2, math.ceil(2.5 * l2_bytes / set_bytes))
    return max(1, min(wanted, 512, int(0.5 * free_bytes) // set_bytes))
