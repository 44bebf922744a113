"""What a trace says of accesses to the GPU's memory where some records stand for several."""

from __future__ import annotations

import numpy as np

from gemmsim.trace.types import WarpTrace

_SHARED_BELOW = 1 << 32


def expanded(trace: WarpTrace) -> np.ndarray:
    """Return int64 [accesses, 3] (warp, instruction, base), sorted, with each access for which a record stands."""
    warp = np.repeat(np.arange(len(trace.record_start) - 1), np.diff(trace.record_start))
    base, pc = trace.record_base.astype(np.int64), trace.record_pc.astype(np.int64)
    times = np.ones(len(base), np.int64) if trace.repeats is None else trace.repeats.of_record
    step = np.zeros(len(base), np.int64) if trace.repeats is None else trace.repeats.step_bytes
    times = np.where(base < _SHARED_BELOW, 0, times)
    of = np.repeat(np.arange(len(base)), times)
    more = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
    rows = np.stack([warp[of], pc[of], base[of] + more * step[of]])
    return rows[:, np.lexsort(rows[::-1])].T
