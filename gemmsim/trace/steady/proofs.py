"""Remembers for how many periods warps were proved to go on as they do, for when they come to the same loop again.

A block of many tiles comes to its loop with other words in some registers, which hold the place of the tile. What is
proved where these are not known, but the same in each period, holds whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.lower.context import ALL
from gemmsim.trace.steady.affine import Walk
from gemmsim.trace.steady.followed import Followed
from gemmsim.trace.steady.loop import Loop
from gemmsim.trace.steady.paths import Path
from gemmsim.trace.steady.period import Instructions
from gemmsim.trace.steady.rows import Rows
from gemmsim.trace.steady.states import Bounds

_MOST_KEPT = 4  # proofs of the way of the same warps through a loop
# Ways of which proofs are kept, those that were asked for last. A proof of all warps of a block may be half a megabyte,
# and a block may come to its loop in another way in each of hundreds of tiles.
_MOST_WAYS = 1 << 7


@dataclass(frozen=True, eq=False)
class _Proof:
    """That warps go on like this.

    first, step   uint32 [warps, words]: registers where the first period begins, and by how much they move in each
    blocks        int32 [warps, words]: what is known of them in other blocks; None where nothing is asked
    read          bool [words]: which of them the proof knows
    periods       for how many periods it holds
    strides       bytes by which addresses move in a period
    moving        (instruction, by how many bytes in a period) of those that access the GPU's memory
    bounded       {number in `blocks`: the least and the greatest difference that it may stand for}
    """

    first: NDArray[np.uint32]
    step: NDArray[np.uint32]
    blocks: NDArray[np.int32] | None
    read: NDArray[np.bool_]
    periods: int
    strides: frozenset[int]
    moving: tuple[tuple[int, int], ...]
    bounded: dict[int, tuple[int, int]]

    def holds(
        self,
        first: NDArray[np.uint32],
        step: NDArray[np.uint32],
        blocks: NDArray[np.int32] | None,
        bounds: Bounds | None = None,
    ) -> bool:
        for some in (slice(1), slice(None)):  # tiles mostly differ in the first warp already
            if ((first[some] != self.first[some]) & self.read).any():
                return False
        if not np.array_equal(step, self.step):
            return False
        return blocks is None or (self.blocks is not None and self._follows(self.blocks, blocks, bounds))

    def _follows(self, known: NDArray[np.int32], blocks: NDArray[np.int32], bounds: Bounds | None) -> bool:
        """Whether words that differed alike do so, too. By what they do matters only where it is bounded."""
        other = (blocks != known) & self.read
        if not other.any() and not self.bounded:
            return True
        if not known[other].all():
            return False
        some = (known != 0) & self.read
        pairs = np.unique(known[some].astype(np.int64) << 32 | blocks[some])
        now = {pair >> 32: pair & ALL for pair in pairs.tolist()}
        return len(now) == len(pairs) and all(
            _within(number, now, span, bounds) for number, span in self.bounded.items()
        )

    def others(self, first: NDArray[np.uint32], blocks: NDArray[np.int32] | None) -> NDArray[np.int64]:
        """Return which rows differ from those of this proof, or are not known to it."""
        differs = (first != self.first) | ~self.read
        if blocks is not None and self.blocks is not None:
            differs |= blocks != self.blocks
        return np.flatnonzero(differs.any(axis=0).reshape(-1, WARP_LANES).any(axis=1))


def _within(number: int, now: dict[int, int], span: tuple[int, int], bounds: Bounds | None) -> bool:
    """Whether the differences for which a number stands now are within those for which it stood."""
    found = (0, 0) if now.get(number) == 0 else bounds(now[number]) if bounds and number in now else None
    return found is not None and span[0] <= found[0] and found[1] <= span[1]


class Proofs:
    """Asks a `Walk` where it is not known, and collects what it finds of addresses.

    strides  bytes by which addresses moved in all periods since `forget`
    moving   {(warp, instruction): by how many bytes in a period} of those that access the GPU's memory
    factor   see `Walk`
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._known: dict[tuple[tuple[int, ...], Instructions, Path], list[_Proof]] = {}
        # Warps and first instructions of which what differs must be known
        self._vain: set[tuple[tuple[int, ...], int]] = set()
        self.loop: Loop | None = None  # where a block was cut last
        self.again: list[NDArray[np.int64]] = []  # behind which periods blocks are cut in each tile (`again`)
        self.strides: set[int] = set()
        self.moving: dict[tuple[int, int], int] = {}

    @property
    def factor(self) -> int:
        return self._walk.factor

    @property
    def rows(self) -> Rows | None:
        """Those that may change, and so all that is asked of."""
        return self._walk.rows

    def begin(self) -> None:
        """Note that another block begins."""
        self._walk.begin()

    def forget(self) -> None:
        """Forget what was found of addresses."""
        self.strides.clear()
        self.moving.clear()

    def periods(
        self, followed: Followed, instructions: Sequence[int], path: Path, most: int, bounds: Bounds | None = None
    ) -> int:
        """Return for how many periods warps go on, as `Walk.periods` does; the other parameters are the same. Where it
        is not proved of all at once, each is looked at by itself."""
        periods = self._of_all(followed, instructions, path, most, bounds)
        if periods or len(followed.warps) == 1:
            return periods
        periods = most
        for n in range(len(followed.warps)):
            periods = self._of_all(followed.one(n), instructions, path, periods, bounds)
            if not periods:
                break
        return periods

    def _of_all(
        self, followed: Followed, instructions: Sequence[int], path: Path, most: int, bounds: Bounds | None
    ) -> int:
        warps, first, step, blocks, _ = followed
        way = warps, Instructions.of(instructions), path
        known = self._known[way] = self._known.pop(way, [])
        if len(self._known) > _MOST_WAYS:
            del self._known[next(iter(self._known))]
        proof = next((one for one in known if one.holds(first, step, blocks, bounds)), None)
        if proof is None:
            proof = self._prove(known, followed, instructions, path, most, bounds)
        elif proof.blocks is not None and blocks is not None and not proof.bounded:
            known.remove(proof)
            proof = replace(proof, blocks=blocks.copy())
        else:
            known.remove(proof)
        known.insert(0, proof)
        del known[_MOST_KEPT:]
        self.strides |= proof.strides
        self.moving |= {(warp, instruction): stride for warp in warps for instruction, stride in proof.moving}
        return min(most, proof.periods)

    def _prove(
        self,
        known: list[_Proof],
        followed: Followed,
        instructions: Sequence[int],
        path: Path,
        most: int,
        bounds: Bounds | None,
    ) -> _Proof:
        """Prove it without what differs from an earlier proof, if that is possible."""
        warps, first, step, blocks, _ = followed
        loop = (warps, instructions[0])
        ways: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        if known and loop not in self._vain and np.array_equal(known[0].step, step):
            others = known[0].others(first, blocks)
            if not step.reshape(len(warps), -1, WARP_LANES)[:, others].any():
                ways.insert(0, others)
        whole = followed.of_all_rows()
        for unknown in ways:
            self._walk.forget()
            begins = unknown * WARP_LANES if self.rows is None else self.rows.begins[unknown]
            asked = instructions, path, most, blocks, begins.tolist(), bounds
            periods = self._walk.periods(whole, step, *asked)
            if periods:
                break
            if len(unknown):
                self._vain.add(loop)
        read = np.ones((first.shape[1] // WARP_LANES, WARP_LANES), np.bool_)
        read[unknown] = False
        found = frozenset(self._walk.strides), tuple(self._walk.moving.items()), dict(self._walk.bounded)
        kept = first.copy(), step.copy(), None if blocks is None else blocks.copy()
        return _Proof(*kept, read.reshape(-1), periods, *found)
