"""Counts how many blocks of a cluster get what a bulk load brings (multicast): L2 reads it once, each SM gets it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace.types import WarpTrace


def receivers(trace: WarpTrace) -> NDArray[np.float64]:
    """Return how many mbarriers each instruction reaches a time, on average: float64 [instructions].

    A bulk load tells one mbarrier in each block that gets it. Where no stream with the instruction was recorded, and
    for all that reaches no mbarrier, it is 1.
    """
    found, syncs = np.ones(trace.executed.shape[1]), trace.syncs
    if syncs is None or not len(syncs.at):
        return found
    warp = np.repeat(np.arange(len(syncs.start) - 1), np.diff(syncs.start))
    pc = trace.pc[trace.pc_start[warp] + syncs.at]
    begins = np.append(True, (np.diff(syncs.at) != 0) | (np.diff(warp) != 0))
    rows, times = (np.bincount(which, minlength=len(found)) for which in (pc, pc[begins]))
    reached = times > 0
    found[reached] = rows[reached] / times[reached]
    return found
