"""Cuts a block whose warps wait at mbarriers, and that may compute many tiles, one after the other.

Its loops are short, and come again with each tile. So a loop is cut where it is in the same state as when it was cut
before, but for the place of the tile: then what was proved of it is known (`proofs`). Where tiles are equally long, the
block is stopped there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from gemmsim.trace.steady.lengths import lengths_of
from gemmsim.trace.steady.loop import Loop
from gemmsim.trace.steady.period import Period
from gemmsim.trace.steady.proofs import Proofs
from gemmsim.trace.steady.running import Skips

# Instructions that are left whole, more than the model of time simulates of a block, which begins with its first one;
# and those in the last third of which a period is looked for
WHOLE, WINDOW = 1_250_000, 3 << 14
_TRIES = 256
_NEAR = 2  # periods by which a loop is let go on to where it was cut before; it is cut earlier where these are more
_RARELY = 16  # a loop is looked for after this part of what was executed since the last one, at least


class Tiles:
    """Cuts one block. `skipping` knows how."""

    def __init__(self, skipping: Skips, proofs: Proofs) -> None:
        self._skipping, self._proofs, self._every = skipping, proofs, range(skipping.warps)
        self._loop: Loop | None = proofs.loop
        self._begun = False  # whether the block was cut
        self._distance = 0  # instructions from where the block was cut to where it was the next time

    def stops(self) -> Iterator[int]:
        """Yield as `Skipping.stops` does."""
        self._skipping.record()
        yield WHOLE
        for _ in range(_TRIES):
            if self._loop is None:
                yield from self._find()
            elif not (yield from self._next_tile(self._loop)):
                self._loop = None
        self._skipping.record(False)

    def _find(self) -> Iterator[int]:
        """Look for a loop, and cut the block there."""
        for length in lengths_of(self._skipping.stream_of_block(WINDOW)):
            found = yield from self._skipping.states(length, self._every)
            if found is not None and (yield from self._cut(length, found)):
                return
        yield WINDOW // 6

    def _next_tile(self, loop: Loop) -> Generator[int, None, bool]:
        """Let the block go on to where it is as it was when it was cut, and cut it; return whether that is found."""
        skipping, begun, period = self._skipping, self._skipping.done, len(loop.stream)
        yield max(period, self._distance - (begun - loop.at) if self._distance else 0)
        for _ in range(_TRIES):
            stream = skipping.stream_of_block(period)
            registers = skipping.registers()
            wait, before = loop.until_same(stream), loop.lengths_before(registers)
            if wait is None:
                yield max(period // 2, (skipping.done - begun) // _RARELY)
            elif wait or before is None or before < 0:  # too late: the next tile's loop comes to this place
                yield wait or period
            elif before % (period // loop.length) or 0 < before * loop.length <= _NEAR * period:
                yield (before % (period // loop.length) or before) * loop.length
            elif (yield from self._cut(loop.length, Period(stream, self._every, registers, loop.step))):
                return True
            else:
                yield period
        return False

    def _cut(self, length: int, period: Period) -> Generator[int, None, bool]:
        """Cut the block behind a period, in which its stream comes again after `length`; return whether it is cut."""
        known, at, registers, step = self._loop, self._skipping.done, period.registers, period.step
        if not step.any() or not (yield from self._skipping.cut_behind(period, 1)):
            return False
        same = known is not None and known.lengths_before(registers) == 0
        self._distance = at - known.at if known is not None and same and self._begun else 0
        self._begun = True
        self._loop = self._proofs.loop = Loop(length, period.stream, registers, step, int((step != 0).argmax()), at)
        return True
