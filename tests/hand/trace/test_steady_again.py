"""Where a block of many tiles is cut: each tile's loop at the instruction at which the loops before it were cut."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest

from gemmsim.trace.steady import again
from gemmsim.trace.steady.again import Again
from gemmsim.trace.steady.loop import until_same

LOOP, OTHER = [10, 11, 12, 13, 14], [20, 21, 22, 23, 24]
TIMES = 20  # that a tile's loop comes


class Block:
    """A block of two warps, of which all instructions are known; each warp executes one in turn. It is cut nowhere, but
    notes behind which instruction it was tried.

    tiles  for each how many instructions come before its loop, and those of the loop
    """

    warps = 2

    def __init__(self, *tiles: tuple[int, list[int]]) -> None:
        code = [pc for before, loop in tiles for pc in [*range(100, 100 + before), *(loop * TIMES)]]
        self._stream = np.array([pc + (warp << 32) for pc in code for warp in range(self.warps)])
        self.done = 0
        self.tried: list[int] = []

    def stream_of_block(self, most: int) -> np.ndarray:
        return self._stream[max(0, self.done - most) : self.done]

    def attempt(self, lengths: list[int], warps: range) -> Generator[int, None, int]:
        assert lengths == [2 * len(LOOP)] and warps == range(2)
        last = int(self._stream[self.done - 1])
        self.tried.append((last & 0xFFFFFFFF) + (last >> 32) / 10)
        yield 2 * TIMES * len(LOOP)  # what is left out, which is all of the loop
        return lengths[0]

    def run(self, known: list[np.ndarray]) -> list[float]:
        """Return the instructions behind which the block is tried, each with a tenth for the second warp."""
        for wait in Again(self, known, 2 * len(LOOP)).stops():  # type: ignore[arg-type]
            self.done += wait
            if self.done >= len(self._stream):
                break
        return self.tried


def test_each_loop_is_cut_at_the_instruction_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 instructions of both warps, two periods, are looked at after 20 and then after each 10. With 7 instructions of
    each warp before the loop, these are 14, and the first 20 that are two periods end with the 40th: behind 26 of the
    loop, which is its third instruction of a warp, by the second warp. Without the rule, others would be found
    wherever they were."""
    monkeypatch.setattr(again, "WHOLE", 0)
    tiles = [(before, LOOP) for before in (7, 8, 9, 11)]
    assert Block(*tiles).run([]) == [12.1] * 4
    monkeypatch.setattr(again, "WHOLE", 1 << 20)
    assert len(set(Block(*tiles).run([]))) > 1  # in the part that is simulated


def test_loops_of_other_instructions_have_places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first loop is cut behind 40 instructions, and ends 200 later, behind 10 of the next one. 10 more, and these
    are two periods."""
    monkeypatch.setattr(again, "WHOLE", 0)
    known: list[np.ndarray] = []
    assert Block((7, LOOP), (8, OTHER), (9, LOOP), (11, OTHER)).run(known) == [12.1, 24.1, 12.1, 24.1]
    assert [period[-1] & 0xFFFFFFFF for period in known] == [12, 24]
    # What one block found is known when the next one begins.
    assert Block((8, LOOP), (8, LOOP)).run(known) == [12.1, 12.1]
    assert len(known) == 2


def test_a_loop_goes_on_to_a_known_place() -> None:
    """Of a period of 3 instructions, of which a stream has two."""
    known = np.array([1, 2, 3, 1, 2, 3])
    assert [until_same(known, np.roll(known, -n), 3) for n in range(4)] == [0, 2, 1, 0]
    assert until_same(known, known + 1, 3) is None and until_same(known, known[::-1].copy(), 3) is None
