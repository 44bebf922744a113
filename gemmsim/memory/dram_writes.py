"""Says how many sectors DRAM writes because of each request that stores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.caches.l2 import L2Start
from gemmsim.memory.grid.footprint import Footprint
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.sector_assignment import round_to_sectors
from gemmsim.memory.requests.cache_operations import WRITE
from gemmsim.memory.requests.coalescer import Coalesced


def written_to_dram(
    stored: NDArray[np.uint16],
    requests: L1Requests,
    coalesced: Coalesced,
    local: NDArray[np.bool_],
    weight: NDArray[np.float64],
    footprint: Footprint,
    begins: L2Start,
) -> NDArray[np.uint16]:
    """Return how many sectors DRAM writes sooner or later for each request: uint16 [requests].

    What arrays are stored into is written once where L2 begins empty, for other launches come before and after. Stacks
    are used again by each block, and by each launch, so of these only what L2 has to replace is written.

    stored         see `sector_assignment.stored_once`
    local, weight  bool, float64 [requests] whether each is to local memory, and for how many of the launch it stands
    """
    written = stored
    if begins is not False:
        written = _scaled(stored, ~local, weight, footprint.written_sectors - footprint.stack_sectors, requests)
    if not local.any():
        return written
    stacks = np.where(local & (requests.operation == WRITE), coalesced.sectors[requests.shape], 0)
    return np.where(local, _scaled(stacks, local, weight, footprint.stack_sectors, requests), written)


def _scaled(
    stored: NDArray, of: NDArray[np.bool_], weight: NDArray[np.float64], written: float, requests: L1Requests
) -> NDArray[np.uint16]:
    """Return the share of the `stored` sectors of each request that makes `written` sectors in the whole launch, if
    only the requests `of` count.
    """
    total = float(weight[of] @ stored[of])
    share = min(1.0, written / total) if total else 0.0
    return round_to_sectors((stored * share).astype(np.float64), requests.pc)
