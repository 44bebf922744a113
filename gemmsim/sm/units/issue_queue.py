"""A sub-partition's queues of instructions that have issued and wait for a unit.

An entry of the queue of memory instructions is held until the data stage takes it, or, of a load that misses, until its
tags are looked up; one of the queue of a warpgroup's multiplications until the tensor pipe takes it.
"""

from __future__ import annotations

from gemmsim.native.records import Ints, Record
from gemmsim.sm.units.pipes import Port, block_until


class IssueQueue(Record):
    """A queue of one sub-partition.

    first, length  where in `releases` the oldest entry is, and how many entries are held
    releases       the cycle at which each entry is free again, ascending: a ring with room for one entry more than the
                   queue has
    """

    first: int
    length: int
    releases: Ints


def hold_entry(queue: IssueQueue, entries: int, port: Port, release: int, now: int) -> None:
    """Hold one of the `entries` of a queue from cycle `now`, in which its instruction issues, until cycle `release`."""
    room = entries + 1
    while queue.length > 0 and queue.releases[queue.first] <= now:
        queue.first = (queue.first + 1) % room
        queue.length -= 1
    i = queue.length
    while i > 0 and queue.releases[(queue.first + i - 1) % room] > release:
        queue.releases[(queue.first + i) % room] = queue.releases[(queue.first + i - 1) % room]
        i -= 1
    queue.releases[(queue.first + i) % room] = release
    queue.length += 1
    if queue.length == entries:
        block_until(port, now, queue.releases[queue.first])
