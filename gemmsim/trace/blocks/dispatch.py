"""Says which blocks the SMs execute that may be the last to end, where blocks have unequal work.

The block scheduler of a GPU gives the next block to the SM where one has ended. Where all blocks have equal work, each
SM gets equally many of them, and nothing more is to be known. Else an SM that got short blocks gets more of them: a
grid half of whose blocks leave at once takes half the time (`docs/model/sampling.md` has measurements).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gemmsim.native.function import NativeFunction
from gemmsim.trace.types import SmShare

_ALIKE = 1.02  # blocks have equal work if none executes so many times as much as another
_MOST_TIMED = 8  # blocks whose instruction streams are recorded

_deal = NativeFunction("gemmsim.trace.blocks.dispatch_loop", "deal", [Path(__file__).with_name("dispatch_loop.py")])


def shares_of_last_sms(
    work: NDArray[np.int64], like: NDArray[np.int64], sms: int, resident: int
) -> tuple[SmShare, ...]:
    """Deal the blocks of a grid to SMs, and return what those SMs execute that may be the last to end.

    One is the SM that ends last if its work alone decides that. The other has the longest block, which may be the last
    to end because a block alone cannot keep an SM busy. There are none if all blocks have equal work.

    work      int64 [grid blocks] warp instructions of each block
    like      int64 [grid blocks] an executed block that does what each block does
    resident  blocks that fit on an SM at once

    An SM is taken to do one warp instruction at a time, of k blocks for the oldest one k times as often as for the
    youngest, for the second oldest k - 1 times as often, and so on: older blocks go first (`sm.units.scheduler`), but
    one that leaves at once does not wait for them. That decides which blocks an SM gets, not how long they take.
    """
    if work.max() <= _ALIKE * work.min():
        return ()
    resident = min(resident, -(-len(work) // sms))
    sm_of = np.zeros(len(work), np.int64)
    places = np.zeros((sms, resident))
    last = _deal(
        work.astype(np.float64),
        sm_of,
        places,
        np.full(places.shape, -1),
        np.zeros(places.shape),
        np.zeros(sms),
        np.zeros(sms),
    )
    longest = np.zeros(sms, np.int64)
    np.maximum.at(longest, sm_of, work)
    total = np.bincount(sm_of, work, minlength=sms)
    with_longest = max(range(sms), key=lambda sm: (longest[sm], total[sm]))
    few = (last,) if longest[last] == longest[with_longest] else (last, with_longest)
    return tuple(_share_of(np.flatnonzero(sm_of == sm), work, like, sms) for sm in few)


def _share_of(blocks: NDArray[np.int64], work: NDArray[np.int64], like: NDArray[np.int64], sms: int) -> SmShare:
    own = work[blocks]
    return SmShare(like[_represented(blocks, own)], own, min(sms, -(-int(work.sum()) // int(own.sum()))))


def _represented(blocks: NDArray[np.int64], work: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of `blocks` one of few blocks that has as much to do or, where these would be too many, about as
    much: the middle one of those with the most similar work.
    """
    amounts, first, which = np.unique(work, return_index=True, return_inverse=True)
    if len(amounts) <= _MOST_TIMED:
        return blocks[first[which]]
    found = np.empty_like(blocks)
    for group in np.array_split(np.argsort(work, kind="stable"), _MOST_TIMED):
        found[group] = blocks[group[len(group) // 2]]
    return found
