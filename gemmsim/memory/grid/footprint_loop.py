"""The compiled loop of `gemmsim.memory.grid.footprint`, which follows the waves of blocks through L2."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.grid.bit_words import bits_below, bits_in
from gemmsim.memory.requests.cache_operations import READ, WRITE

DIRTY, EVICT_FIRST = 1, 2  # bits of an entry of `Known.last`


def visit_waves(lists, visits, launches, capacity, evict_first, known, read, touched):  # type: ignore[no-untyped-def]
    """Fill `read` and `touched`, and return how many dirty sectors DRAM was given.

    lists, visits  `sector_lists.Sectors` and `footprint.Visits`
    known          `footprint.Known`
    launches       identical launches that follow one another; only the last one is counted
    capacity       int64 [3] sectors that L2 holds, how many of them may be dirty, and how many, at least, are for what
                   is evicted first
    evict_first    bool [instructions] whether L2 is told to replace first what each reads
    read           int64 [instructions] sectors that DRAM reads for each instruction
    touched        int64 [instructions] sectors that each instruction is the first of a wave to touch, over all waves
    """
    start, sector, pc, operation = lists.start, lists.sector, lists.pc, lists.operation
    held, held_first, held_dirty = known.held, known.held_first, known.held_dirty
    last, words, before_word = known.last, known.words, known.before
    packed = len(words) > 0
    wave, number, offset = visits.wave, visits.list, visits.offset
    written = np.int64(0)
    waves = wave[-1] + 1
    for launch in range(launches):
        written = np.int64(0)
        read[:] = 0
        touched[:] = 0
        for v in range(len(wave)):
            now = launch * waves + wave[v]
            if v == 0 or wave[v] != wave[v - 1]:
                # Sectors touched in this wave or later are in L2; those touched in that one or later may be dirty.
                oldest = _oldest(held, now, capacity[0])
                oldest_first = _oldest(held_first, now, max(capacity[0] - _held_since(held, oldest, now), capacity[2]))
                oldest_dirty = _oldest(held_dirty, now, capacity[1])
            by = offset[v]
            for i in range(start[number[v]], start[number[v] + 1]):
                at = sector[i] + by
                if packed:
                    at = before_word[at >> 6] + bits_in(words[at >> 6] & bits_below(at))
                entry = np.int64(last[at])
                before, was_first, dirty = (entry >> 2) - 1, entry & EVICT_FIRST, entry & DIRTY
                there = before >= oldest_first if was_first else before >= oldest
                if before < now:
                    touched[pc[i]] += 1
                    if not there and operation[i] != WRITE:
                        read[pc[i]] += 1
                    if dirty and (before < oldest_dirty or not there):
                        written += 1
                        held_dirty[before] -= 1
                        dirty = np.int64(0)
                reads = operation[i] == READ
                is_first = EVICT_FIRST if reads and evict_first[pc[i]] and (was_first or before < now) else 0
                is_dirty = dirty if reads else DIRTY
                if before == now and is_first == was_first and is_dirty == dirty:
                    continue
                if before >= 0:
                    if was_first:
                        held_first[before] -= 1
                    else:
                        held[before] -= 1
                    if dirty:
                        held_dirty[before] -= 1
                if is_first:
                    held_first[now] += 1
                else:
                    held[now] += 1
                if is_dirty:
                    held_dirty[now] += 1
                last[at] = ((now + 1) << 2) + is_first + is_dirty
        end = (launch + 1) * waves
        oldest = _oldest(held, end, capacity[0])
        oldest_first = _oldest(held_first, end, max(capacity[0] - _held_since(held, oldest, end), capacity[2]))
        oldest_dirty = _oldest(held_dirty, end, capacity[1])
        for s in range(len(last)):
            entry = np.int64(last[s])
            before = (entry >> 2) - 1
            there = before >= oldest_first if entry & EVICT_FIRST else before >= oldest
            if entry & DIRTY and (before < oldest_dirty or not there):
                written += 1
                held_dirty[before] -= 1
                last[s] -= DIRTY
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


def _held_since(held, wave, now):  # type: ignore[no-untyped-def]
    """Return how many sectors the waves from `wave` to before `now` were the last to touch."""
    total = 0
    for w in range(wave, now):
        total += held[w]
    return total


def _oldest(held, now, capacity):  # type: ignore[no-untyped-def]
    """Return the first wave whose sectors are still in L2 at wave `now`: they and those touched since fit in it."""
    total = 0
    for earlier in range(now - 1, -1, -1):
        total += held[earlier]
        if total > capacity:
            return earlier + 1
    return 0
