"""The tables of `gemmsim.memory.grid.touched`: its bitmap, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Groups:
    """What an instruction has in a list, one element a pair of them, in ascending order; all int64.

    list, pc, operation  number of the list, instruction, READ, WRITE or ATOMIC
    entries              its entries in the list
    """

    list: NDArray[np.int64]
    pc: NDArray[np.int64]
    operation: NDArray[np.int64]
    entries: NDArray[np.int64]


@dataclass(frozen=True)
class Bits:
    """A bitmap of entries from a first one on, of which most are not set.

    words    uint64 [entries / 64] a bit an entry
    summary  uint64 [words / 64] a bit a word: whether it has any bit
    low      the entry of the first bit, a multiple of 64
    """

    words: NDArray[np.uint64]
    summary: NDArray[np.uint64]
    low: int


@dataclass(frozen=True)
class Words:
    """The words of a bitmap that have any bit, in ascending order.

    place   int32 [words] the number of each word
    before  int32 [words] how many units are in those before it
    word    uint64 [words]
    """

    place: NDArray[np.int32]
    before: NDArray[np.int32]
    word: NDArray[np.uint64]

    @classmethod
    def room_for(cls, words: int) -> Words:
        """Return room for so many. Where it is not needed it costs nothing."""
        return cls(np.empty(words, np.int32), np.empty(words, np.int32), np.empty(words, np.uint64))
