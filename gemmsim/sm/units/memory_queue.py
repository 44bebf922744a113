"""A sub-partition's queue of memory instructions: an entry is held from issue until the data stage takes it."""

from __future__ import annotations

from gemmsim.native.records import Ints, Record
from gemmsim.sm.spec import Spec
from gemmsim.sm.units.pipes import Port, block_until


class MemoryQueue(Record):
    """The queue of one sub-partition.

    first, length  where in `releases` the oldest entry is, and how many entries are held
    releases       the cycle at which each entry is free again, in the order of issue: a ring with room for one entry
                   more than the queue has
    """

    first: int
    length: int
    releases: Ints


def hold_entry(spec: Spec, queue: MemoryQueue, port: Port, release: int, now: int) -> None:
    """Hold an entry from cycle `now`, in which its instruction issues, until cycle `release`. The release must not lie
    before that of any earlier entry.
    """
    room = spec.queue_entries + 1
    while queue.length > 0 and queue.releases[queue.first] <= now:
        queue.first = (queue.first + 1) % room
        queue.length -= 1
    queue.releases[(queue.first + queue.length) % room] = release
    queue.length += 1
    if queue.length == spec.queue_entries:
        block_until(port, now, queue.releases[queue.first])
