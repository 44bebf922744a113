"""The compiled loops of `gemmsim.memory.grid.touched`, which mark entries in a bitmap and find them there."""

from __future__ import annotations

import numpy as np


def mark(chosen, base, shape, times, step, coalesced, grain, bits):  # type: ignore[no-untyped-def]
    """Set the bits of the entries that requests touch.

    chosen       int32 or int64 [n] the requests
    base         int64 [requests] sector of the base of each request
    shape        int32 [requests] shape of each request, an index into `coalesced`
    times, step  see `L1Requests`
    grain        sectors that an entry stands for; requests touch them together
    bits         `touched._Bits`
    """
    several = len(times) > 0
    for n in range(len(chosen)):
        i = chosen[n]
        further, count = np.int64(0), np.int64(1)
        first = coalesced.sector_start[shape[i]]
        if several and step[i] != 0:
            further, count = step[i], times[i]
        for j in range(first, first + coalesced.sectors[shape[i]], grain):
            for more in range(count):
                at = (base[i] + coalesced.sector_offset[j] + more * further) // grain - bits.low
                bits.words[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
                bits.summary[at >> 12] |= np.uint64(1) << np.uint64((at >> 6) & 63)


def measure(bits, apart):  # type: ignore[no-untyped-def]
    """Empty the bitmap, and return how many entries were in it.

    apart  uint64 [units] for units of 2, 4, 8, 16 and 32 entries gets bits where the first entries of the two halves of
           a unit are not alike
    """
    count, w = np.int64(0), _next(bits, 0)
    while w >= 0:
        word = _take(bits, w)
        apart[0] |= (word ^ (word >> np.uint64(1))) & np.uint64(0x5555555555555555)
        apart[1] |= (word ^ (word >> np.uint64(2))) & np.uint64(0x1111111111111111)
        apart[2] |= (word ^ (word >> np.uint64(4))) & np.uint64(0x0101010101010101)
        apart[3] |= (word ^ (word >> np.uint64(8))) & np.uint64(0x0001000100010001)
        apart[4] |= (word ^ (word >> np.uint64(16))) & np.uint64(0x0000000100000001)
        while word != 0:
            word &= word - np.uint64(1)
            count += 1
        w = _next(bits, w)
    return count


def collect(bits, unit, every, before, sector):  # type: ignore[no-untyped-def]
    """Empty the bitmap, and list every `every`-th unit of `unit` entries of it.

    before  how many units of the same list there were before
    sector  int64 [n] is filled with the numbers of these units
    """
    number, at = np.int64(before), np.int64(0)
    together = (np.uint64(1) << np.uint64(unit)) - np.uint64(1)
    w = _next(bits, 0)
    while w >= 0:
        word = _take(bits, w)
        while word != 0:
            lowest = _lowest(word)
            word &= ~(together << np.uint64(lowest))
            if number % every == 0:
                sector[at] = (bits.low + w * 64 + lowest) // unit
                at += 1
            number += 1
        w = _next(bits, w)


def _next(bits, first):  # type: ignore[no-untyped-def]
    """Return the number of the first word that has any bit, where those before `first` have none; -1 without any."""
    for s in range(first >> 6, len(bits.summary)):
        if bits.summary[s] != 0:
            return np.int64(s * 64 + _lowest(bits.summary[s]))
    return np.int64(-1)


def _take(bits, w):  # type: ignore[no-untyped-def]
    """Return word `w` of the bitmap, and empty it."""
    word = bits.words[w]
    bits.words[w] = np.uint64(0)
    bits.summary[w >> 6] &= ~(np.uint64(1) << np.uint64(w & 63))
    return word


def _lowest(word):  # type: ignore[no-untyped-def]
    """Return the place of the lowest bit of a word that has any."""
    at, lowest = np.int64(0), word & (~word + np.uint64(1))
    for step in (32, 16, 8, 4, 2, 1):
        if lowest >> np.uint64(step) != 0:
            lowest = lowest >> np.uint64(step)
            at += step
    return at
