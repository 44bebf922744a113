"""Lists of the sectors that executed blocks access (`gemmsim.memory.grid.touched`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.bitmap import Groups


@dataclass(frozen=True)
class Sectors:
    """Lists of what blocks access, in which each pair of a sector and an instruction occurs once.

    List i has the entries start[i]:start[i + 1]. The other arrays have one element an entry; there may be millions.
    """

    start: NDArray[np.int64]
    sector: NDArray[np.int32]
    pc: NDArray[np.int32]
    operation: NDArray[np.uint8]


def in_lists(
    of: Groups, lists: int, groups: NDArray[np.int64], sector: NDArray[np.int32], count: NDArray[np.int64]
) -> Sectors:
    """Put what was chosen of some groups, one after the other, in `lists` lists, each in the order of its sectors. Each
    list is sorted by itself, which takes less time and memory than all of them at once.

    groups  int64 [n] numbers of the groups, and `count` how many sectors each of them has in `sector`
    """
    of_list = of.list[groups]
    start = np.append(0, np.cumsum(np.bincount(of_list, count, lists))).astype(np.int64)
    ends, bits, size = np.cumsum(count), len(of.list).bit_length(), len(sector)
    found = Sectors(start, np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.uint8))
    for number in np.unique(of_list).tolist():
        mine, part = np.flatnonzero(of_list == number), slice(*start[number : number + 2].tolist())
        key = np.concatenate([sector[ends[n] - count[n] : ends[n]] for n in mine.tolist()]).astype(np.int64) << bits
        key |= np.repeat(groups[mine], count[mine])
        key.sort(kind="stable")  # several times as fast where sorted parts follow one another, as groups do
        found.sector[part] = key >> bits
        group = key & (1 << bits) - 1
        found.pc[part], found.operation[part] = of.pc[group], of.operation[group]
    return found
