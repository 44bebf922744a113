"""Describes a period of a block's instruction stream, of which more may follow that are like it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace.steady.paths import Path, path_of

_MOST_KNOWN = 8  # streams, which may be a megabyte each


class Instructions(tuple[int, ...]):
    """Those of a warp in a period, thousands of them, of which the hash is computed once."""

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Instructions:
        return numbers if isinstance(numbers, cls) else cls(numbers)

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Period:
    """A period that has just been executed.

    stream     int64 [instructions], each with its warp above bit 32
    warps      the warps that may execute it
    registers  uint32 [warps, words] of these warps, behind it; of the rows that may change (`rows.Rows`)
    step       uint32 [warps, words] by how much they move in a period
    """

    stream: NDArray[np.int64]
    warps: range
    registers: NDArray[np.uint32]
    step: NDArray[np.uint32]

    @property
    def rows(self) -> slice:
        """Where the warps are among all warps of the block."""
        return slice(self.warps.start, self.warps.stop)

    def alike(self, states: NDArray[np.int64]) -> Iterator[tuple[list[int], Instructions, Path | None]]:
        """Yield warps that execute the same instructions with the same threads while their registers move alike:
        their places in `registers`, the instructions, and the path, None where one has no single one.

        states  int64 [warps of the block, words.WARP_WORDS]
        """
        found: dict[tuple[int, int, Path | None], list[int]] = {}
        distinct, number = _of_warps(self.stream.tobytes(), self.warps)
        first_alike = _first_alike(self.step)
        for place, warp in enumerate(self.warps):
            if distinct[number[place]]:
                key = number[place], first_alike[place], path_of(states[warp])
                found.setdefault(key, []).append(place)
        for (which, _, path), places in found.items():
            yield places, distinct[which], path


# A block comes to the same loops again and again.
@lru_cache(_MOST_KNOWN)
def _of_warps(stream: bytes, warps: range) -> tuple[list[Instructions], list[int]]:
    """Return the different lists of instructions that warps execute, and which of them each warp does.

    stream  of a `Period`, as bytes
    """
    instructions = np.frombuffer(stream, np.int64)
    of_warp, pcs = instructions >> 32, instructions & 0xFFFFFFFF
    found: dict[Instructions, int] = {}
    number = [found.setdefault(Instructions(pcs[of_warp == warp].tolist()), len(found)) for warp in warps]
    return list(found), number


@cached_by_identity(2)  # tiles move as the one before
def _first_alike(rows: NDArray[np.uint32]) -> list[int]:
    """Return for each row which one is the first that is like it."""
    found: list[int] = []
    for place, row in enumerate(rows):
        alike = (first for first in sorted(set(found)) if np.array_equal(rows[first], row))
        found.append(next(alike, place))
    return found
