"""The compiled loop of `gemmsim.memory.grid.footprint`, which follows the waves of blocks through L2."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.grid.bit_words import bits_below, bits_in
from gemmsim.memory.requests.cache_operations import READ, WRITE


def visit_waves(lists, visits, launches, capacity, known, read, touched):  # type: ignore[no-untyped-def]
    """Fill `read` and `touched`, and return how many dirty sectors were replaced.

    lists, visits  `sector_lists.Sectors` and `footprint.Visits`
    known          `footprint.Known`
    launches       identical launches that follow one another; only the last one is counted
    capacity       sectors that L2 holds
    read           int64 [instructions] sectors that DRAM reads for each instruction
    touched        int64 [instructions] sectors that each instruction is the first of a wave to touch, over all waves
    """
    start, sector, pc, operation = lists.start, lists.sector, lists.pc, lists.operation
    held, last, words, before_word = known.held, known.last, known.words, known.before
    packed = len(words) > 0
    wave, number, offset = visits.wave, visits.list, visits.offset
    written = np.int64(0)
    waves = wave[-1] + 1
    oldest = 0  # sectors touched in this wave or later are in L2
    for launch in range(launches):
        written = np.int64(0)
        read[:] = 0
        touched[:] = 0
        for v in range(len(wave)):
            now = launch * waves + wave[v]
            if v == 0 or wave[v] != wave[v - 1]:
                oldest = _oldest(held, now, capacity)
            by, new = offset[v], np.int64(0)
            for i in range(start[number[v]], start[number[v] + 1]):
                at = sector[i] + by
                if packed:
                    at = before_word[at >> 6] + bits_in(words[at >> 6] & bits_below(at))
                entry = last[at]
                before, dirty = (np.int64(entry) >> 1) - 1, entry & 1
                if before < now:
                    touched[pc[i]] += 1
                    if before < oldest:
                        if operation[i] != WRITE:
                            read[pc[i]] += 1
                        written += dirty
                        dirty = entry & 0
                    if before >= 0:
                        held[before] -= 1
                    new += 1
                    last[at] = 2 * (now + 1) + dirty
                if operation[i] != READ:
                    last[at] |= 1
            held[now] += new
    oldest = _oldest(held, launches * waves, capacity)
    for s in range(len(last)):
        if last[s] & 1 and (last[s] >> 1) - 1 < oldest:
            written += 1
    return written


def number_visited(lists, visits, words, before):  # type: ignore[no-untyped-def]
    """Number the sectors that are ever visited, in ascending order, and return how many there are.

    words   uint64 [sectors / 64], zeros: a bit of each sector that is visited is set
    before  int32 [sectors / 64] is filled with how many of these come before the sectors of each word
    """
    start, sector, number, offset = lists.start, lists.sector, visits.list, visits.offset
    for v in range(len(number)):
        for i in range(start[number[v]], start[number[v] + 1]):
            at = sector[i] + offset[v]
            words[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
    total = np.int64(0)
    for w in range(len(words)):
        before[w] = total
        if words[w] != 0:
            total += bits_in(words[w])
    return total


def _oldest(held, now, capacity):  # type: ignore[no-untyped-def]
    """Return the first wave whose sectors are still in L2 at wave `now`: they and those touched since fit in it."""
    total = 0
    for earlier in range(now - 1, -1, -1):
        total += held[earlier]
        if total > capacity:
            return earlier + 1
    return 0
