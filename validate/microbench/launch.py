"""Measures what a launch costs beyond its work, the time between one block and the next, and the SM clock."""

from __future__ import annotations

import numpy as np

from .bench import Bench, Found, Raw
from .ptx import fold, kernel

SPINS = (2_000, 4_000, 8_000, 16_000)  # cycles that a kernel spins
LAUNCHES = 50
GENERATIONS = 8  # blocks that run one after another on each SM
_MOST_SHARED = 48 << 10  # bytes of static shared memory that a block can have


def kernels(arch: str) -> dict[str, str]:
    spin = """cvt.u64.u32 %d1, %other;
WAIT:
    mov.u64 %d0, %clock64;
    sub.u64 %d0, %d0, %start;
    setp.lt.u64 %p1, %d0, %d1;
    @%p1 bra WAIT;"""
    return {
        "spin": kernel("spin", "", spin, fold(["%other"])),
        # A block fills an SM's shared memory, with the dynamic part of the launch, so that blocks follow one another.
        "alone": kernel("alone", "", spin, fold(["%other"]), shared_bytes=_MOST_SHARED - 1024),
        # This kernel spins for a known time of the wall clock, which tells the frequency of the SM clock.
        "wall": kernel(
            "wall",
            "mov.u64 %d2, %globaltimer;",
            """cvt.u64.u32 %d1, %other;
WAIT:
    mov.u64 %d0, %globaltimer;
    sub.u64 %d0, %d0, %d2;
    setp.lt.u64 %p1, %d0, %d1;
    @%p1 bra WAIT;""",
            fold(["%other"]),
        ),
    }


def run(bench: Bench, arch: str) -> Raw:
    """Measure how long kernels take that spin, the SM clock by the wall clock, and the gaps between blocks."""
    raw: Raw = {"clock_mhz": bench.clock_mhz(), "spin_us": {}}
    for cycles in SPINS:
        raw["spin_us"][str(cycles)] = bench.time_us("spin", bench.sms, 32, None, 1, cycles, LAUNCHES)
    wall_ns = 1_000_000
    warps = bench.launch("wall", 1, 32, None, 1, wall_ns)
    raw["wall"] = {"ns": wall_ns, "cycles": warps.cycles}
    warps = bench.launch("alone", bench.sms * GENERATIONS, 1024, None, 1, 4_000, bench.max_shared_bytes - _MOST_SHARED)
    raw["gaps"] = gaps(warps.start, warps.stop, warps.sm, 32)
    return raw


def gaps(start: np.ndarray, stop: np.ndarray, sm: np.ndarray, warps_per_block: int) -> list[int]:
    """Return the cycles from each block's last clock to the first clock of the next block on its SM.

    `start`, `stop` and `sm` have one element for each warp (see `Warps`). An SM must run only one block at a time.
    """
    first = start.reshape(-1, warps_per_block).min(axis=1)
    last = stop.reshape(-1, warps_per_block).max(axis=1)
    where = sm.reshape(-1, warps_per_block)[:, 0]
    found: list[int] = []
    for one in np.unique(where):
        order = np.argsort(first[where == one])
        begins, ends = first[where == one][order], last[where == one][order]
        between = begins[1:] - ends[:-1]
        found += [int(gap) for gap in between if gap > 0]  # blocks that ran side by side have no gap
    return found


def values(raw: Raw) -> list[Found]:
    """Fit a line through launch times against cycles; return the values of a preset.

    The slope of the line tells the SM clock; its value at 0 cycles is the overhead of a launch.
    """
    cycles = np.array([int(count) for count in raw["spin_us"]], float)
    slope, overhead = np.polyfit(cycles, np.array(list(raw["spin_us"].values()), float), 1)
    clock_hz = 1e6 / slope
    found = [Found("clock.sm_load_hz", clock_hz, "kernels that spin 2,000 to 16,000 cycles: a light load")]
    start_us = 0.0
    if raw["gaps"]:
        gap = float(np.median(raw["gaps"]))
        start_us = gap / clock_hz * 1e6
        found.append(Found("launch.block_start_cycles", gap, "from a block's last clock to the next one's first"))
    what = "kernels that spin 2,000 to 16,000 cycles, replayed as a graph: their time at none, without block_start"
    return [*found, Found("launch.overhead_us", max(0.0, float(overhead) - start_us), what)]
