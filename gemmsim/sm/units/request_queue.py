"""The queues between the sub-partitions' address units and L1: one that all requests enter, in order, and behind it one
of loads to registers that wait for tags or for the data stage, which requests to shared memory pass.

On an H200 60 requests to shared memory with 32-way conflicts are under way, and 63 to 65 loads of as many lines, which
hit or miss: 40 of them in the sub-partitions (tests/records/h200_queues.json). Matrix loads issue beside loads that
miss as if these were not there, until no more loads can wait (tests/records/h200_load_bursts.json).
"""

from __future__ import annotations

from gemmsim.sm.spec import Spec
from gemmsim.sm.units.machine import MemoryPath, SubPartition
from gemmsim.sm.units.server import book


def enter(spec: Spec, memory: MemoryPath, part: SubPartition, address_cycles: float, now: int) -> float:
    """Return the cycle at which the address unit hands the request that issues in cycle `now` to the shared queue,
    which takes one request at a time while it has room.
    """
    addressed = max(part.address_free, now + spec.issue_to_address_cycles) + address_cycles
    if spec.shared_entries > 0:
        addressed = max(addressed, memory.handed_over[memory.oldest])
        addressed = book(memory.entrance, now, addressed, spec.request_cycles)
    return addressed


def first_in_queue(spec: Spec, memory: MemoryPath, addressed: float, apart: bool) -> float:
    """Return the cycle at which the request that enters the shared queue at `addressed` is the first of it: requests
    leave it in the order in which they enter it.

    apart  whether it goes on to the queue of loads, and waits until there is room
    """
    first = addressed
    # One that enters before another which has been booked already waits for none.
    if spec.shared_entries > 0 and addressed >= memory.entered:
        memory.entered = addressed
        first = max(first, left_before(spec, memory, 0))
    return max(first, memory.loads_begun[memory.oldest_load]) if apart else first


def leave(spec: Spec, memory: MemoryPath, addressed: float, leaves: float, begin: float, apart: bool) -> float:
    """Note that a request leaves the shared queue at `leaves`, and its stage begins with it at `begin`. Return when its
    address unit is free of it.

    addressed  when it entered that queue
    apart      whether it goes on to the queue of loads
    """
    if apart:
        memory.loads_begun[memory.oldest_load] = begin
        memory.oldest_load = (memory.oldest_load + 1) % spec.load_entries
    if spec.shared_entries == 0:
        return leaves  # a slow stage fills the address unit itself
    memory.handed_over[memory.oldest] = leaves
    memory.oldest = (memory.oldest + 1) % spec.shared_entries
    return max(addressed, leaves) if apart else addressed


def left_before(spec: Spec, memory: MemoryPath, behind: int) -> float:
    """Return when the request leaves the shared queue that is `behind` requests before the last one; 0 where the queue
    holds no more than these.

    A copy (LDGSTS) has read its registers only then: on an H200, where each warp writes those of a copy again at once,
    ten copies are under way, and one more a warp (`Mio.copy_reads_behind`).
    """
    if behind >= spec.shared_entries:
        return 0.0
    return memory.handed_over[(memory.oldest + spec.shared_entries - 1 - behind) % spec.shared_entries]


def behind_requests(spec: Spec, memory: MemoryPath, now: int) -> float:
    """Return the cycle from which what issues in cycle `now` and comes behind all that is in the queues goes on, as if
    it had issued then: when the last request leaves them, less the time from issue to the address unit.

    Special registers do (S2R): on an H200, rounds of stores to shared memory, of loads or of copies take as much longer
    with one behind them as rounds of nothing, 30 cycles in most cases: none of its time passes beside theirs
    (tests/records/h200_special_registers.json).
    """
    if spec.shared_entries == 0:
        return float(now)
    behind = left_before(spec, memory, 0)
    if spec.load_entries > 0:
        behind = max(behind, memory.loads_begun[(memory.oldest_load + spec.load_entries - 1) % spec.load_entries])
    return max(float(now), behind - spec.issue_to_address_cycles)
