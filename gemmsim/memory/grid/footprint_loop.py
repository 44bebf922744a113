"""The compiled loop of `gemmsim.memory.grid.footprint`, which follows the waves of blocks through L2."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.requests.cache_operations import READ, WRITE


def visit_waves(lists, visits, launches, capacity, known, read, touched):  # type: ignore[no-untyped-def]
    """Fill `read` and `touched`, and return how many dirty sectors were replaced.

    lists, visits  `touched.Sectors` and `footprint.Visits`
    known          `footprint.Known`, zeros
    launches       identical launches that follow one another; only the last one is counted
    capacity       sectors that L2 holds
    read           int64 [instructions] sectors that DRAM reads for each instruction
    touched        int64 [instructions] sectors that each instruction is the first of a wave to touch, over all waves
    """
    start, sector, pc, operation, times = lists.start, lists.sector, lists.pc, lists.operation, lists.times
    held, last, stands = known.held, known.last, known.stands
    repeated = len(stands) > 1
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
                entry = last[sector[i] + by]
                before, dirty = (np.int64(entry) >> 1) - 1, entry & 1
                if before < now:
                    count, stood = np.int64(1), np.int64(1)
                    if repeated:
                        count, stood = times[i], np.int64(stands[sector[i] + by])
                        stands[sector[i] + by] = count
                    touched[pc[i]] += count
                    if before < oldest:
                        if operation[i] != WRITE:
                            read[pc[i]] += count
                        written += dirty * stood
                        dirty = entry & 0
                    if before >= 0:
                        held[before] -= stood
                    new += count
                    last[sector[i] + by] = 2 * (now + 1) + dirty
                if operation[i] != READ:
                    last[sector[i] + by] |= 1
            held[now] += new
    oldest = _oldest(held, launches * waves, capacity)
    for s in range(len(last)):
        if last[s] & 1 and (last[s] >> 1) - 1 < oldest:
            if repeated:
                written += np.int64(stands[s])
            else:
                written += 1
    return written


def _oldest(held, now, capacity):  # type: ignore[no-untyped-def]
    """Return the first wave whose sectors are still in L2 at wave `now`: they and those touched since fit in it."""
    total = 0
    for earlier in range(now - 1, -1, -1):
        total += held[earlier]
        if total > capacity:
            return earlier + 1
    return 0
