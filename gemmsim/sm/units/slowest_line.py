"""How much longer than a line of mean latency the slowest line of a load takes.

Lines lie at different distances from an SM, in slices of L2 and in rows of DRAM of their own, and a load is as late as
the last of its lines. On an H200 a load of 16 bytes a lane takes 333 cycles from L2 where one of 4 bytes takes 318, and
four at once 374 and 346 (own microbenchmark, tests/records/h200_loaded_latency.json). From DRAM the slowest of 4 lines
of a tile takes 110 cycles longer than one, of 16 some 245, of 64 and more some 415 (tests/records/h200_tma_load.json).
Both are as of lines whose latencies are normally distributed. Lines next to each other come nearly together: from DRAM
four in a row take 460 cycles longer than from L2, four of different rows 530 (tests/records/h200_rows.json). Counting
runs of 256 bytes fits both.

No generator of random numbers is needed: `Spec` has quantiles of the slowest of so many lines, which the loads of an SM
take in turn.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gemmsim.sm.spec import Spec
from gemmsim.sm.units.machine import MemoryPath

LEVELS = 9  # loads of 1, 2, 4, ... 256 lines
DRAWS = 32
_STEP = 13  # from one draw to the next: neighbours are far apart, and all come before one comes again


@cache
def deviations() -> NDArray[np.float64]:
    """Return how much longer than the mean the slowest line takes: float64 [LEVELS * DRAWS], standard deviations."""
    quantiles = (np.arange(DRAWS) + 0.5) / DRAWS
    normal = NormalDist()
    return np.array([normal.inv_cdf(quantile ** (0.5**level)) for level in range(LEVELS) for quantile in quantiles])


def level_of(lines: int) -> int:
    """Return how often two of one become so many lines, rounded down."""
    level = 0
    while lines > 1 and level < LEVELS - 1:
        lines = lines // 2
        level += 1
    return level


def slowest_of(spec: Spec, memory: MemoryPath, lines: int) -> float:
    """Return how much longer than the mean the slowest line of the next load takes, in standard deviations."""
    memory.draws = (memory.draws + _STEP) % DRAWS
    return spec.slowest[level_of(lines) * DRAWS + memory.draws]
