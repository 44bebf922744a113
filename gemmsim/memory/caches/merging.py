"""Reads that SMs of one GPC ask L2 for together: the coalescer on their way makes one request of them (Hopper).

On an H200 (own microbenchmark: SMs read the same lines, one each 2500 cycles, each some cycles after another) requests
for the same sectors of a line merge where they come from SMs of one GPC, up to four into one, while the first is under
way: 35 to 100 cycles where L2 has the line, until it arrives where DRAM must deliver it. Those of other GPCs never
merge; whether two SMs share a TPC makes no difference.

Which requests come that close together is a matter of time, of which a cache replay has none. Blocks that run alone on
their SMs are taken to move in step: all SMs of a GPC whose blocks want the same data ask for it at the same time. An SM
with r blocks serves one or another of them, and two SMs serve the same part of their work at one time by chance, once
in r.

Not modelled: blocks that load far ahead of what they wait for, and drift apart, and what brings back into step those
with many blocks an SM; how well this holds is in validate/deviations.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.block_steps import BlockSteps, coordinates
from gemmsim.memory.grid.placement import Placement
from gemmsim.support.sorting import distinct_rows
from gemmsim.trace.types import Launch


def merged_share(
    launch: Launch, steps: BlockSteps, placement: Placement, resident: int, requests: int
) -> NDArray[np.float64]:
    """Share of each instruction's reads that join another SM's on their way to L2: float64 [instructions].

    resident   blocks that an SM holds at once
    requests   that may become one; 1: none merge
    0 where the steps between blocks are not known.
    """
    share = np.zeros(steps.step_bytes.shape[1])
    if requests < 2 or not all(steps.known):
        return share
    together = min(launch.blocks, len(placement.gpc) * resident)  # the first generation stands for all
    sm = placement.sm[:together]
    at = coordinates(np.arange(together), launch.grid)
    moves, of = np.unique(steps.step_bytes.T, axis=0, return_inverse=True)
    for number, move in enumerate(moves):
        # An SM asks once: L1 has it then.
        place = distinct_rows(np.stack([placement.gpc[sm], at @ move, sm], axis=1))
        _, sms = np.unique(place[:, :2], axis=0, return_counts=True)
        share[of.reshape(-1) == number] = 1 - (-(-sms // requests)).sum() / sms.sum()
    return share / min(resident, -(-launch.blocks // len(placement.gpc)))
