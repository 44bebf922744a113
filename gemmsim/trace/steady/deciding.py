"""Says what decides how a block goes on, besides the registers of the warps that are looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words
from gemmsim.trace.block_state import BlockState

_WARPGROUP = 4  # warps
_COUNTS = [words.GROUPS, words.ARRIVALS]


def deciding(state: BlockState, counters: NDArray[np.int64], shadow: NDArray[np.int32] | None) -> tuple[NDArray, ...]:
    """Return all that must be the same in each period, but for registers. It changes when the block goes on: there may
    be megabytes of shared memory, so it is copied only where it is kept (`kept`).

    Not among it are numbers that only grow and decide nothing: how many events there were, how many phases mbarriers
    have completed, of which their own words tell the parity, and how many rows of syncs there are. Of the groups of
    multiplications that a warp has closed matters how many more they are than those of its warpgroup's other warps.

    shadow  what is known of the registers in other blocks; None where nothing is
    """
    warps, barriers = state.warps.copy(), state.barriers.copy()
    warps[:, [words.MEETINGS, words.LAST_MET]] = 0
    first = np.arange(len(warps)) // _WARPGROUP * _WARPGROUP
    warps[:, _COUNTS] -= state.warps[first][:, _COUNTS]
    barriers[words.EVENTS] = 0
    related = () if shadow is None else (shadow,)
    return warps, state.shared, state.local, barriers, counters[[words.UNMET]], *related


def kept(arrays: tuple[NDArray, ...]) -> tuple[NDArray, ...]:
    """Return copies of what `deciding` returns, which stay as they are when the block goes on."""
    return tuple(array.copy() for array in arrays)
