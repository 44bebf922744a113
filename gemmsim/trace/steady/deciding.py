"""Says what decides how a block goes on, besides the registers of the warps that are looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words
from gemmsim.trace.block_state import BlockState

_WARPGROUP = 4  # warps


def deciding(state: BlockState, counters: NDArray[np.int64], shadow: NDArray[np.int32] | None) -> tuple[NDArray, ...]:
    """Return all that must be the same in each period, but for registers: last shared and local memory, which change
    when the block goes on. There may be megabytes of these, so they are copied only where they are kept (`kept`).

    Not among it are numbers that only grow and decide nothing: how many events there were, how many phases mbarriers
    have completed, of which their own words tell the parity, and how many rows of syncs there are. Of the groups of
    multiplications that a warp has closed matters how many more they are than those of its warpgroup's other warps.

    shadow  what is known of the registers in other blocks, a copy; None where nothing is
    """
    warps, barriers = state.warps.copy(), state.barriers.copy()
    warps[:, words.MEETINGS] = warps[:, words.LAST_MET] = 0
    for count in (words.GROUPS, words.ARRIVALS):
        of_first = state.warps[::_WARPGROUP, count]
        warps[:, count] -= np.repeat(of_first, _WARPGROUP)[: len(warps)]
    barriers[words.EVENTS] = 0
    related = () if shadow is None else (shadow,)
    return warps, barriers, counters[[words.UNMET]], *related, state.shared, state.local


def kept(arrays: tuple[NDArray, ...]) -> tuple[NDArray, ...]:
    """Return what `deciding` returns as it stays when the block goes on."""
    *others, shared, local = arrays
    return *others, shared.copy(), local.copy()
