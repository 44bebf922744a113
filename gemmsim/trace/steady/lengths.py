"""Says after how many instructions a stream may come again, and for how long the words that move may do so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.identity_cache import cached_by_identity

MOST_PERIODS = 1 << 40
_CANDIDATES = 3
_TAIL = 48  # instructions by which a repetition is looked for


def lengths_of(stream: NDArray[np.int64]) -> list[int]:
    """Return after how many instructions the end of a stream may come again, the shortest first.

    What comes again must have done so through the stream's last third.
    """
    ends = np.flatnonzero(stream[:-1] == stream[-1])
    tail = min(_TAIL, len(stream) - 1)
    for back in range(1, tail):
        ends = ends[ends >= back]
        ends = ends[stream[ends - back] == stream[len(stream) - 1 - back]]
    found: list[int] = []
    span = len(stream) // 3
    for length in (len(stream) - 1 - ends)[::-1].tolist():
        if 2 * length > span or len(found) == _CANDIDATES:
            break
        if any(length % shorter == 0 for shorter in found):
            continue
        if np.array_equal(stream[-span:], stream[-span - length : -length]):
            found.append(length)
    return found


@cached_by_identity(2)  # tiles move as the one before
def periods_until_all_wrap(step: NDArray[np.uint32]) -> int:
    """Return after how many periods no word has gone round that moves by `step` in each."""
    most = max(int(step.view(np.int32).max()), -int(step.view(np.int32).min()))
    return (1 << 32) // most - 1 if most else MOST_PERIODS
