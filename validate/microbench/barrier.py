"""Measures the cycles that a barrier takes, in which an SM counts the arriving warps one by one, then releases them."""

from __future__ import annotations

import numpy as np

from gemmsim.support.warp import WARP_LANES

from .bench import Bench, Found, Raw, cycles_per_step
from .ptx import unrolled

WARPS = (1, 2, 4, 8, 16, 24, 32)


def kernels(arch: str) -> dict[str, str]:
    return unrolled("barrier", "", lambda i: "bar.sync 0;", "")


def run(bench: Bench, arch: str) -> Raw:
    """Measure {warps of the block: cycles of a barrier}."""
    return {str(warps): cycles_per_step(bench, "barrier", WARP_LANES * warps, None, 32) for warps in WARPS}


def values(raw: Raw) -> list[Found]:
    """Fit a line through cycles against warps: its slope is one arrival, its value at 0 warps the release."""
    warps = np.array([int(count) for count in raw], float)
    slope, rest = np.polyfit(warps, np.array(list(raw.values()), float), 1)
    what = f"barriers of {int(warps.min())} to {int(warps.max())} warps take {rest:.1f} + {slope:.2f} w cycles"
    return [
        Found("barrier.arrival_cycles", float(slope), what),
        Found("barrier.release_cycles", float(rest), what),
    ]
