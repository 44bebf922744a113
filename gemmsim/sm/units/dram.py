"""What DRAM adds to a load: its latency, which differs from line to line, its queue, and this SM's share of its rate.

A tile of TMA waits for the slowest of its lines, which lie in rows of DRAM of their own. On an H200 one line takes
405 to 425 cycles longer from DRAM than from L2, the slowest of 4 takes 110 more than that, of 16 some 245, of 64 and
more some 415: as of lines whose latencies are normally distributed (own microbenchmark,
tests/records/h200_tma_load.json). The lines of an ordinary load are taken to come together; what a block waits for is
the slowest of its loads. No generator of random numbers is needed: `Spec` has quantiles of the slowest of so many
lines, which the loads of an SM take in turn.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gemmsim.sm.spec import Spec
from gemmsim.sm.units.machine import MemoryPath
from gemmsim.sm.units.share import take

_MOST_USED = 0.98  # keeps a queue finite; above it the bandwidth itself is what is waited for
LINE_SECTORS = 4
LEVELS = 9  # loads of 1, 2, 4, ... 256 lines
DRAWS = 32
_STEP = 13  # from one draw to the next: neighbours are far apart, and all come before one comes again


def delays(deviation_cycles: float, least_cycles: float) -> NDArray[np.float64]:
    """Return for how much longer than one line the slowest of a load takes: float64 [LEVELS * DRAWS], cycles.

    deviation_cycles  standard deviation of the latency from line to line
    least_cycles      no delay is less: a line does not come from DRAM sooner than from L2
    """
    return np.maximum(deviation_cycles * _deviations(), least_cycles)


@cache
def _deviations() -> NDArray[np.float64]:
    """Return `delays` in standard deviations, whatever is least."""
    quantiles = (np.arange(DRAWS) + 0.5) / DRAWS
    slowest = [[quantile ** (0.5**level) for quantile in quantiles] for level in range(LEVELS)]
    normal = NormalDist()
    return np.array([normal.inv_cdf(quantile) for row in slowest for quantile in row])


def level_of(lines: int) -> int:
    """Return how often two of one become so many lines, rounded down."""
    level = 0
    while lines > 1 and level < LEVELS - 1:
        lines = lines // 2
        level += 1
    return level


def latency(spec: Spec, memory: MemoryPath, lines: int) -> float:
    """Return the latency of a load of so many lines that come from DRAM, while nothing else is asked of it."""
    memory.draws = (memory.draws + _STEP) % DRAWS
    return spec.dram_latency_cycles + spec.dram_delays[level_of(lines) * DRAWS + memory.draws]


def load_latency(spec: Spec, memory: MemoryPath, shared: int, lines: int) -> float:
    """Return the latency of an ordinary load from DRAM, while nothing else is asked of it.

    Of two partitions of L2 each has a part of DRAM behind it, and a line from the far part comes later. But where SMs
    near to both ask for it, those that are near have it read for all. So most lines come as soon as near ones, and to
    all SMs alike (own microbenchmark on an H100, tests/records/h100_shared_lines.json).

    shared  above 0 where other SMs ask for the same
    lines   of the load, which is as late as the last of them
    """
    found = latency(spec, memory, 1)
    if shared == 0:
        return found
    all_soon = 1.0
    for _ in range(lines):
        all_soon *= 1.0 - spec.dram_shared_late_share
    return min(found, spec.dram_shared_latency_cycles) if memory.draws + 0.5 < DRAWS * all_soon else found


def queue_cycles(cycles: float, busy_cycles: float, lines: int, latency_cycles: float, now: int) -> float:
    """Return for how long the slowest line of a load waits behind those of other SMs, which come at random. What this
    SM asks for too soon waits for its share.

    The more of the bandwidth has been used so far, the longer, as in a queue with one server; twice the lines wait for
    one more such time, as the latest of waits that are exponentially distributed does.

    cycles       what a line waits where half of the bandwidth is used
    busy_cycles  of the SM's share, until now
    """
    used = min(busy_cycles / max(float(now), latency_cycles), _MOST_USED)
    return cycles * (1 + level_of(lines)) * used / (1 - used)


def load(spec: Spec, memory: MemoryPath, sectors: int, now: int) -> float:
    """Return the cycle before which sectors of an ordinary load have not all come from DRAM."""
    memory.turns += sectors
    return take(memory.dram_share, now, sectors * spec.sector_dram_cycles, spec.loads_in_step)


def read(spec: Spec, memory: MemoryPath, sectors: int, now: int) -> float:
    """Return the cycle in which DRAM begins to read sectors of a tile for this SM, one tile after another."""
    return load(spec, memory, sectors, now) - sectors * spec.sector_dram_cycles


def write(spec: Spec, memory: MemoryPath, sectors: int, now: int) -> None:
    """Book the write of sectors to DRAM. As many of them as were read in between make it turn round."""
    if sectors <= 0:
        return
    turning = min(sectors, memory.turns)
    memory.turns -= turning
    cycles = (sectors + turning * spec.dram_turnaround) * spec.sector_dram_cycles
    take(memory.dram_share, now, cycles, spec.loads_in_step)
