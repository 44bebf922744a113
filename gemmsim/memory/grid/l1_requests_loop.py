"""The compiled loop of `gemmsim.memory.grid.l1_requests.L1Requests.execution_number`."""

from __future__ import annotations


def number_executions(pc, start, seen, number):  # type: ignore[no-untyped-def]
    """Fill `number`, int64 [requests]: how often the warp of each request has executed its instruction before.

    pc, start  the fields `pc` and `start` of `L1Requests`
    seen       int64 [2, instructions], zeros: how often the last warp that executed an instruction has done so, and 1
               more than the index of that warp
    """
    for warp in range(len(start) - 1):
        for i in range(start[warp], start[warp + 1]):
            if seen[1, pc[i]] != warp + 1:
                seen[0, pc[i]], seen[1, pc[i]] = 0, warp + 1
            number[i] = seen[0, pc[i]]
            seen[0, pc[i]] += 1
