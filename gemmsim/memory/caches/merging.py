"""Reads that SMs of one GPC send to L2 together: the coalescer on their way makes one request of them (Hopper).

This was seen on an H200 (own microbenchmark: SMs read the same lines, one each 2500 cycles, each some cycles after
another). Requests for the same sectors of a line merge where they come from SMs of one GPC, up to four into one, while
the first is under way. That takes 35 to 100 cycles where L2 has the line; otherwise it lasts until DRAM has delivered
it. Requests from different GPCs never merge, and multicast ones with none (tests/records/h200_drifting_tiles.json).
Whether two SMs share a TPC makes no difference.

Which requests come that close together is a matter of time, and a cache replay has no time. Blocks of a wave begin in
step: all SMs of a GPC whose blocks want the same data ask for it at the same time (`in_step`). From then on each wait
for data lets them drift apart at random, so that the distance between two SMs grows with the square root of the number
of waits, and faster where blocks of the same SM compete. Of what could merge in step, this part does (`kept`):

    1 / (1 + sqrt(resident blocks * steps / drift_steps))

A step is one execution of the load that a warp executes most often, in this block and in those that came before it to
the same place. Measured on an H200: block tiles with one to 32 blocks an SM (tests/records/h200_merging_tiles.json) and
blocks that copy tiles and compute little or nothing (tests/records/h200_l2_tiles.json). That is right in the mean over
kernels, not for each of them: those whose waits other work hides lose step sooner, those that wait for each tile later.
Nor is it what single SMs do: those that wait for L2 drift apart at a constant rate, those that wait for the same lines
of DRAM come together (tests/records/h200_sm_distances.json).

SMs that load tiles by TMA, whose waits the SM model knows (gemmsim/sm/units/tma.py), stay in step until they store
their first results, however many loads that takes. Thereafter a smaller part merges (`kept_by_tiles`). Where blocks
compete for an SM fewer do; in time, the SM model says how many fewer.

How well this holds is in validate/deviations.md, what was tried in its place in docs/decisions/tried-and-dropped.md.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.support.sorting import distinct_rows


def in_step(places: NDArray[np.int64], placement: Placement, merged_requests: int) -> NDArray[np.float64]:
    """Return the share of each instruction's reads that join another SM's, with all in step: float64 [instructions].

    places           int64 [blocks, instructions] where each block of the first generation, which stands for all, begins
                     to access memory with each instruction: blocks with the same place want the same data
    merged_requests  how many requests may become one; with 1 none merge
    """
    share = np.zeros(places.shape[1])
    if merged_requests < 2:
        return share
    sm = placement.sm[placement.first]
    kinds, of_kind = np.unique(places - places[:1], axis=1, return_inverse=True)
    for number, place in enumerate(kinds.T):
        # An SM asks L2 once for the same data, because then its L1 has it.
        asks = distinct_rows(np.stack([placement.gpc[sm], place, sm], axis=1))
        _, asking = np.unique(asks[:, :2], axis=0, return_counts=True)
        share[of_kind.reshape(-1) == number] = 1 - (-(-asking // merged_requests)).sum() / asking.sum()
    return share


def kept(placement: Placement, steps: float, drift_steps: float) -> float:
    """Return which part of what could merge in step does.

    steps        how many loads that it waits for an SM's warp executes, one after another, in the whole launch
    drift_steps  after so many steps blocks that are alone on their SMs merge half of what they could
    """
    return 1 / (1 + sqrt(competing_blocks(placement) * steps / drift_steps))


def kept_by_tiles(results: float, merged_later: float, competing: int) -> float:
    """Return which part of what TMA's loads could merge in step does.

    results       how often warps store results, one after another, at the same place of an SM in the whole launch
    merged_later  the part that merges once an SM has stored results
    competing     blocks that an SM has at once
    """
    rounds = max(1.0, results)
    return (1 + (rounds - 1) * merged_later) / rounds / sqrt(competing)


def competing_blocks(placement: Placement) -> int:
    """How many blocks an SM has at once."""
    return min(placement.resident_blocks_per_sm, -(-len(placement.sm) // len(placement.gpc)))
