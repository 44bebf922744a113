"""The compiled loop of `gemmsim.trace.engine.trace_buffers`, which puts recorded items in the order of their warps."""

from __future__ import annotations


def put_in_order(items, first, length, out):  # type: ignore[no-untyped-def]
    """Fill `out` with segments of `items`, one after the other: `length` [segments] items each, from `first` on."""
    at = 0
    for segment in range(len(first)):
        begin = first[segment]
        for n in range(length[segment]):
            out[at + n] = items[begin + n]
        at += length[segment]
