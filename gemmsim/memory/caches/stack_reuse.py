"""Estimates what L2 keeps of local memory between two accesses of a block, where not every block was executed.

A thread uses its stack again and again, and nobody else does. So what counts is how much all resident blocks touch
until a block comes back to the same line, within one wave of blocks. The blocks that share an SM in the replay of L1
are run through a part of L2 as large as their share of all resident blocks. What this part has lost, L2 has lost.

Not modelled: what arrays take of L2 at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L2
from gemmsim.memory.caches.l1 import L2Requests
from gemmsim.memory.caches.l2 import replay_l2
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.residents import Residents
from gemmsim.memory.requests.cache_operations import READ, WRITE

_SECTORS_OF_MASK = np.array([mask.bit_count() for mask in range(16)])


@dataclass(frozen=True)
class StackTraffic:
    """What DRAM does for the local memory of the blocks that were replayed.

    missed         float64 [requests] sectors that DRAM reads for each request of the trace, on average over the blocks
                   that make it; 0 for requests to arrays
    written_share  share of the sectors stored that L2 had to replace and DRAM wrote, from 0 to 1
    """

    missed: NDArray[np.float64]
    written_share: float


def arrays_store(requests: L1Requests, local: NDArray[np.bool_]) -> L1Requests:
    """Return the requests for an estimate of what arrays do in L2: stores to local memory take their room there as
    reads do, and what DRAM writes for them is left to `stack_traffic`.
    """
    return replace(requests, operation=np.where(local, np.uint8(READ), requests.operation)) if local.any() else requests


def stack_traffic(
    to_l2: L2Requests, made: NDArray[np.int64], residents: Residents, l2: L2, blocks: int
) -> StackTraffic:
    """Run what the replayed blocks ask of L2 for local memory, `to_l2`, through their share of it.

    made    int64 [requests] how often the replayed groups make each
    blocks  how many blocks the GPU holds at once
    """
    members = np.diff(residents.first_place)
    begins = residents.start[residents.first_place[:-1]]
    times = np.maximum.reduceat(residents.times, begins)
    counted = np.add.reduceat(residents.times > 0, begins)
    missed = np.zeros(len(made))
    written = stored = 0.0
    for number in range(len(members)):
        part = slice(int(to_l2.start[number]), int(to_l2.start[number + 1]))
        count = part.stop - part.start
        if not count:
            continue
        request, sectors = to_l2.request[part], to_l2.sectors[part]
        asked = L2Requests(
            line=to_l2.line[part],
            sectors=sectors,
            operation=to_l2.operation[part],
            request=np.arange(count),
            start=np.array([0, count]),
        )
        beside = blocks * members[number] / members.max()  # blocks that are resident when those of the group are
        share = min(1.0, counted[number] / beside)
        own = replace(l2, size_bytes=int(l2.size_bytes * share))  # `replay_l2` has at least a set of it
        found = replay_l2(asked, np.zeros(count, np.int64), own, np.array([number % l2.partitions]))
        missed += times[number] * np.bincount(request, found.missed, len(made))
        written += times[number] * found.written_back
        stored += times[number] * float(_SECTORS_OF_MASK[sectors[asked.operation == WRITE]].sum())
    return StackTraffic(missed / np.maximum(made, 1), min(1.0, written / stored) if stored else 0.0)
