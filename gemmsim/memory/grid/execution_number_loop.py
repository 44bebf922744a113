"""The loop of `gemmsim.memory.grid.sector_assignment.passes`."""

from __future__ import annotations


def count(pc, start, seen, time):  # type: ignore[no-untyped-def]
    """seen: zeros [2, instructions], for each how often this warp has executed it, and the last warp that did."""
    for warp in range(len(start) - 1):
        for i in range(start[warp], start[warp + 1]):
            if seen[1, pc[i]] != warp + 1:
                seen[0, pc[i]], seen[1, pc[i]] = 0, warp + 1
            time[i] = seen[0, pc[i]]
            seen[0, pc[i]] += 1
