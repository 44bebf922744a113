"""Reads that SMs of one GPC send to L2 together: the coalescer on their way makes one request of them (Hopper).

This was seen on an H200 (own microbenchmark: SMs read the same lines, one each 2500 cycles, each some cycles after
another). Requests for the same sectors of a line merge where they come from SMs of one GPC, up to four into one, while
the first is under way. That takes 35 to 100 cycles where L2 has the line; otherwise it lasts until DRAM has delivered
it. Requests from different GPCs never merge. Whether two SMs share a TPC makes no difference.

Which requests come that close together is a matter of time, and a cache replay has no time. Blocks that run alone on
their SMs are taken to move in step: all SMs of a GPC whose blocks want the same data ask for it at the same time. An SM
with r blocks serves one or another of them, so two SMs serve the same part of their work at one time by chance, once in
r.

On an H200, blocks alone on their SMs merge 0.69 to 0.95 of that. Several on an SM merge more than that in short
launches, and less in long ones, in which SMs drift apart (tests/records/h200_merging_tiles.json). That is not modelled,
nor are blocks that load far ahead of what they wait for. How well this holds is in validate/deviations.md, and what was
tried in its place in docs/decisions/tried-and-dropped.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.support.sorting import distinct_rows


def merged_share(
    places: NDArray[np.int64], placement: Placement, resident_blocks_per_sm: int, merged_requests: int
) -> NDArray[np.float64]:
    """Return the share of each instruction's reads that join another SM's on their way to L2: float64 [instructions].

    places           int64 [blocks, instructions] where each block of the first generation, which stands for all, begins
                     to access memory with each instruction: blocks with the same place want the same data
    merged_requests  how many requests may become one; with 1 none merge
    """
    share = np.zeros(places.shape[1])
    if merged_requests < 2:
        return share
    blocks, sms = len(places), len(placement.gpc)
    sm = placement.sm[:blocks]
    kinds, of_kind = np.unique(places - places[:1], axis=1, return_inverse=True)
    for number, place in enumerate(kinds.T):
        # An SM asks L2 once for the same data, because then its L1 has it.
        asks = distinct_rows(np.stack([placement.gpc[sm], place, sm], axis=1))
        _, asking = np.unique(asks[:, :2], axis=0, return_counts=True)
        share[of_kind.reshape(-1) == number] = 1 - (-(-asking // merged_requests)).sum() / asking.sum()
    return share / min(resident_blocks_per_sm, -(-len(placement.sm) // sms))
