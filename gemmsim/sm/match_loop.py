"""The compiled loop of `gemmsim.sm.streams`, which finds the instruction that left each memory record."""

from __future__ import annotations


def match(positions, pcs, record_pc, first, record):  # type: ignore[no-untyped-def]
    """Give each memory record of a warp, in order, the next position of its stream that executes the record's
    instruction. Returns how many records found a position; the search ends with the first that finds none.

    positions  those of the stream whose instructions can leave a record
    pcs        static index of the instruction at each position of the stream
    record_pc  static index of the instruction that left each record
    first      number of the warp's first record in the trace
    record     is filled: the number of the record of each position that has one
    """
    found = 0
    for position in positions:
        if found < len(record_pc) and record_pc[found] == pcs[position]:
            record[position] = first + found
            found += 1
    return found
