"""Puts the requests of a sample in groups, in which the entries that they touch are marked (`touched`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.requests.coalescer import Coalesced
from gemmsim.support.sorting import new_rows


@dataclass(frozen=True)
class Marks:
    """Requests in groups, as the compiled loops mark them.

    ends                      int64 [groups] where each group ends
    request                   int32 [n] their numbers
    wide                      int32 [n] how many sectors follow one another from the first one of each of its rows on; 0
                              where its shape says that
    base, shape, times, step  of all requests, as in `L1Requests`
    grain_bits                an entry stands for 2**grain_bits sectors; requests touch them together
    """

    ends: NDArray[np.int64]
    request: NDArray[np.int32]
    wide: NDArray[np.int32]
    base: NDArray[np.int64]
    shape: NDArray[np.int32]
    times: NDArray[np.int64]
    step: NDArray[np.int64]
    grain_bits: int


def alike(marks: Marks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each group a number, which is the same for groups that touch the same entries but for a shift, and the
    first entry of its first request, which says by how much they are shifted: int64 [groups] each.

    As each tile of a matrix is read as the one before, a sample of thousands of groups may have a few dozen different
    ones.
    """
    columns: list[NDArray] = [marks.shape, *((marks.times, marks.step) if len(marks.times) else ())]
    number, place = np.zeros((2, len(marks.ends)), np.int64)
    found: dict[bytes, int] = {}
    begin = 0
    for group, end in enumerate(marks.ends.tolist()):
        request = marks.request[begin:end]
        base = marks.base[request]
        place[group] = base[0] >> marks.grain_bits
        parts = [
            base - (place[group] << marks.grain_bits),
            marks.wide[begin:end],
            *(column[request] for column in columns),
        ]
        number[group] = found.setdefault(_digest(parts), group)
        begin = end
    return number, place


def _digest(columns: list[NDArray]) -> bytes:
    """Return 32 bytes that are the same for the same columns, and for others only by a chance that nobody meets."""
    found = hashlib.blake2b(digest_size=32)
    for column in columns:
        found.update(np.ascontiguousarray(column).data)
    return found.digest()


def in_groups(group: NDArray[np.int64], groups: int, requests: L1Requests, coalesced: Coalesced, grain: int) -> Marks:
    """Return requests in the order of their groups, and in each of these first those that do not move, then those that
    move alike, in the order of their addresses.

    A request touches rows of sectors that follow one another; where these are not equally long 0 is returned. Of those
    that move, in iterations that were left out, one whose rows begin where those of another one end becomes part of it:
    there may be hundreds of millions of sectors to mark, and together they are long rows of an array.

    grain  sectors that an entry stands for, a power of two
    """
    width = np.zeros(len(coalesced.sectors), np.int32)
    for shape in np.unique(requests.shape).tolist():
        offset = coalesced.sector_offset[coalesced.sector_start[shape] : coalesced.sector_start[shape + 1]]
        rows = np.diff(np.flatnonzero(np.diff(offset, prepend=offset[0] - 2, append=offset[-1] + 2) != 1))
        width[shape] = rows[0] if (rows == rows[0]).all() else 0
    wide = width[requests.shape]
    moves, order = np.flatnonzero(requests.step), np.arange(len(group), dtype=np.int32)
    if len(moves):
        columns = [c[moves] for c in (group, requests.shape, requests.step, requests.times, requests.base_sector)]
        moves = moves[np.lexsort(columns[::-1])]
        *alike, first_sector = (
            c[moves] for c in (group, requests.shape, requests.step, requests.times, requests.base_sector)
        )
        begins = new_rows(*alike) | (np.diff(first_sector, prepend=first_sector[0]) != wide[moves])
        first = np.flatnonzero(begins)
        wide[moves[first]] *= np.diff(first, append=len(moves))
        order = np.append(np.flatnonzero(requests.step == 0), moves[first]).astype(np.int32)
    # Small numbers are sorted several times as fast.
    order = order[np.argsort(group.astype(np.uint16)[order] if groups < 1 << 16 else group[order], kind="stable")]
    ends = np.cumsum(np.bincount(group[order], minlength=groups))
    base, shape, times, step = requests.base_sector, requests.shape, requests.times, requests.step
    return Marks(ends, order, wide[order], base, shape, times, step, grain.bit_length() - 1)
