"""Cuts a block wherever a period comes again at which it was cut, as in each tile of a block of many tiles.

A walk through a loop begins where the block has stopped, and what it finds is known where the block stops at the same
instruction again, whatever tile it computes (`tapes`). So a loop goes on to the instruction at which one like it was
cut before it is cut.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace.steady.loop import until_same
from gemmsim.trace.steady.running import Skips
from gemmsim.trace.steady.tiles import WHOLE

_RARELY = 16  # a period that was cut before is looked for after this part of what was executed since then, at least


class Again:
    """Cuts one block, in which a period of `length` instructions was cut.

    skipping  knows how
    known     periods behind which blocks of the same code were cut in this way, int64 [instructions] as in `Loop`; the
              periods of other loops are added
    """

    def __init__(self, skipping: Skips, known: list[NDArray[np.int64]], length: int) -> None:
        self._skipping, self._known, self._length, self._every = skipping, known, length, range(skipping.warps)

    def stops(self) -> Iterator[int]:
        """Yield as `Skipping.stops` does. The longer the block has gone on without the period, the more rarely it is
        looked for."""
        skipping, length, end = self._skipping, self._length, self._skipping.done
        while True:
            yield max(2 * length if skipping.done < 2 * length else length, (skipping.done - end) // _RARELY)
            stream = skipping.stream_of_block(2 * length)
            if np.array_equal(stream[:length], stream[length:]):
                # What the model of time simulates of a block that it cannot cut is cut where it is found.
                if skipping.done >= WHOLE:
                    yield from self._to_known_place(stream[length:])
                cut = yield from skipping.attempt([length], self._every)
                end = skipping.done if cut else end

    def _to_known_place(self, stream: NDArray[np.int64]) -> Iterator[int]:
        """Let a loop, which has executed the period `stream`, go on to the instruction at which one like it was cut."""
        waits = (until_same(known, stream, self._length) for known in self._known if len(known) == len(stream))
        wait = next((found for found in waits if found is not None), None)
        if wait is None:
            self._known.append(stream)
        elif wait:
            yield wait
