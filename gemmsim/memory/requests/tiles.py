"""Finds tiles that TMA loads in part from beyond their array, where it fills them with zeros."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.requests.coalescer import SECTOR_BYTES
from gemmsim.trace.types import WarpTrace


def reach_beyond(
    trace: WarpTrace, copies: NDArray[np.bool_], sectors: NDArray[np.int64], shape: NDArray[np.int32]
) -> bool:
    """Return whether a tile that a recorded stream loads has fewer sectors than its bytes fill.

    On an H200 what is missing comes from L2 all the same, as rows of zeros (own microbenchmark, by hand: of 64 rows of
    128 bytes 256 sectors arrive, wherever the tile lies). Here it is in no counter.

    copies   bool [instructions] which instructions are bulk copies
    sectors  int64 [shapes] sectors that a record of each shape touches
    shape    int32 [records] the shape of each
    """
    syncs = trace.syncs
    if syncs is None or not len(syncs.at):
        return False
    warp = np.repeat(np.arange(len(syncs.start) - 1), np.diff(syncs.start))
    rows = copies[trace.pc[trace.pc_start[warp] + syncs.at]]
    of_copies = np.concatenate([[0], np.cumsum(sectors[shape[copies[trace.record_pc]]])])
    ends = np.cumsum(np.where(rows, syncs.records, 0))
    found = of_copies[ends] - of_copies[ends - np.where(rows, syncs.records, 0)]
    tiles = rows & (syncs.tensor_map != 0) & (syncs.barrier >= 0) & (syncs.records > 0)
    return bool((found[tiles] * SECTOR_BYTES < syncs.bytes[tiles]).any())
