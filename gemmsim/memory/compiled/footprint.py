"""The loop of `gemmsim.memory.footprint.estimate`."""

from __future__ import annotations

from numba import njit

from gemmsim.memory.kinds import READ, WRITE


def visit(  # type: ignore[no-untyped-def]
    launches, start, sector, pc, kind, wave, number, move, every, capacity, held, last, dirty, read, touched
):  # fmt: skip
    """Fill `read` and `touched`, sectors by instruction; returns the dirty sectors replaced. `last`: wave that touched
    a sector; `held`: all 0, sectors by the wave that touched them last. Of several launches in a row, the last one is
    counted."""
    written = 0
    waves = wave[-1] + 1
    oldest = 0  # sectors touched in this wave or later are in L2
    for launch in range(launches):
        written = 0
        read[:] = 0
        touched[:] = 0
        for v in range(len(wave)):
            now = launch * waves + wave[v]
            if v == 0 or wave[v] != wave[v - 1]:
                oldest = _oldest(held, now, capacity)
            for i in range(start[number[v]], start[number[v] + 1], every):
                s = sector[i] + move[v]
                before = last[s]
                if before < now:
                    touched[pc[i]] += 1
                    if before < oldest:
                        if kind[i] != WRITE:
                            read[pc[i]] += 1
                        written += dirty[s]
                        dirty[s] = False
                    if before >= 0:
                        held[before] -= 1
                    held[now] += 1
                    last[s] = now
                if kind[i] != READ:
                    dirty[s] = True
    oldest = _oldest(held, launches * waves, capacity)
    for s in range(len(last)):
        if dirty[s] and last[s] < oldest:
            written += 1
    return written


@njit(inline="always")
def _oldest(held, now, capacity):  # type: ignore[no-untyped-def]
    """First wave whose sectors, and all touched after it, still fit."""
    total = 0
    for earlier in range(now - 1, -1, -1):
        total += held[earlier]
        if total > capacity:
            return earlier + 1
    return 0
