"""The tag stage of L1: four banks of tags, each of which looks up one line of a request a cycle.

Which bank holds a line follows from its number by exclusive or. The masks were found on an H200 (own microbenchmark,
Nsight Compute's l1tex__t_set_conflicts and l1tex__t_output_wavefronts of 513 access patterns, up to 512 MB apart): with
them the wavefronts of every pattern come out as counted. Other architectures are taken to be alike; no measurement says
so.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gemmsim.memory.coalescer import LINE_SHIFT, Coalesced

BANKS = 4
# Bit i of the line number (address / 128) turns these bits of the bank number over.
_TURNS = (1, 2, 1, 2, 3, 1, 2, 3, 2, 1, 2, 1, 3, 1, 3, 2, 1, 3, 2, 3, 2, 3)
LOW_MASK = sum(1 << bit for bit, turns in enumerate(_TURNS) if turns & 1)
HIGH_MASK = sum(1 << bit for bit, turns in enumerate(_TURNS) if turns & 2)


def bank_of(line: int) -> int:
    """Tag bank of a line, by its number; bits of it beyond those measured do not count."""
    return (line & LOW_MASK).bit_count() % 2 + 2 * ((line & HIGH_MASK).bit_count() % 2)


def tag_cycles(
    base: NDArray[np.uint64], shape: NDArray[np.int32], coalesced: Coalesced, lines_per_cycle: int
) -> NDArray[np.int64]:
    """Cycles of the tag stage for each request, int64 [requests]: the most of its lines that lie in one bank.

    base   uint64 [requests] byte addresses, multiples of 128
    shape  int32 [requests] the pattern in `coalesced` that is moved there

    With another number of banks than `BANKS` (`lines_per_cycle`) no hash is known: the lines are then spread evenly.
    """
    if lines_per_cycle != BANKS:
        return -(-coalesced.lines // lines_per_cycle)[shape]
    cycles = np.ones(len(base), np.int64)
    several = np.flatnonzero(coalesced.lines[shape] > 1)
    line = (base[several] >> np.uint64(LINE_SHIFT)).astype(np.int64)
    cycles[several] = _most_in_a_bank(line, shape[several], coalesced.sector_start, coalesced.sector_offset)
    return cycles


@njit(cache=True)
def _parity(word):  # type: ignore[no-untyped-def]
    for shift in (16, 8, 4, 2, 1):
        word ^= word >> shift
    return word & 1


@njit(cache=True)
def _most_in_a_bank(first_line, shape, sector_start, sector_offset):  # type: ignore[no-untyped-def]
    out = np.zeros(len(first_line), np.int64)
    banks = np.zeros(BANKS, np.int64)
    for i in range(len(first_line)):
        banks[:] = 0
        before = np.int64(-1) << 62
        for j in range(sector_start[shape[i]], sector_start[shape[i] + 1]):
            line = first_line[i] + (sector_offset[j] >> 2)
            if line != before:
                before = line
                banks[_parity(line & LOW_MASK) + 2 * _parity(line & HIGH_MASK)] += 1
        out[i] = banks.max()
    return out
