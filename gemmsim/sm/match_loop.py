"""The loop of `gemmsim.sm.streams`."""

from __future__ import annotations


def match(positions, pcs, record_pc, first, record):  # type: ignore[no-untyped-def]
    """Give each record, in order, the next position with its instruction; returns how many found one."""
    found = 0
    for position in positions:
        if found < len(record_pc) and record_pc[found] == pcs[position]:
            record[position] = first + found
            found += 1
    return found
