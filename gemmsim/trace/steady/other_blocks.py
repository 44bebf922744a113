"""Says what is known of an operation's results in other blocks, from what is known of its operands there."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES

# What is known of a word in other blocks: it is that of this block, it is not, or whether it is may change on the way.
# A number above 0 says by which vector of differences it is another one.
SAME_IN_BLOCKS, UNKNOWN, CHANGES = 0, -1, -2


def results_in_blocks(known: NDArray[np.int64], changes: bool, name: str, plain: tuple[bool, ...]) -> NDArray[np.int64]:
    """Return what is known of the results of an operation: int64 [warps, lanes].

    known    int64 [operands, warps, lanes]: what is known of each operand
    changes  whether results may become others on the way in those blocks, though they do not here
    plain    whether each operand is taken as it is
    """
    return _results(known.tobytes(), len(known), changes, name, plain)


# The same few patterns come again with each warp, period and tile.
@lru_cache(1 << 12)
def _results(content: bytes, operands: int, changes: bool, name: str, plain: tuple[bool, ...]) -> NDArray[np.int64]:
    known = np.frombuffer(content, np.int64).reshape(operands, -1, WARP_LANES)
    differ = known != SAME_IN_BLOCKS
    several = differ.sum(axis=0)
    alone = name in ("mov", "iadd3", "imad") and not (known < 0).any()
    alone = alone and all(whole or not row.any() for whole, row in zip(plain, differ, strict=True))
    one = known.max(axis=0) if alone else np.full_like(known[0], UNKNOWN)
    found = np.where(several == 0, SAME_IN_BLOCKS, np.where(several == 1, one, UNKNOWN))
    if name == "imad" and alone:
        found = np.where(differ[:2].any(axis=0), UNKNOWN, found)
    may_change = (known == CHANGES).any(axis=0) | (changes & (several > 0))
    return np.where(may_change, CHANGES, found)
