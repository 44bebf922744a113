"""The L2 cache: which of the sectors that the L1s ask for hit, and what goes to DRAM.

L2 has 128-byte lines of four 32-byte sectors and LRU replacement; arrays fill its sets evenly (`lru.even_set_of`). It
begins empty (Nsight Compute flushes it before the
kernel), as an identical launch has left it, or as another launch has. The SMs' requests are taken one line each in
turn. The order of the SMs changes from turn to turn, so that no SM, and none of a few neighbours, is always the one
that finds what they share absent. A read fetches the sectors that are missing, in aligned pieces of the GPU's
`L2.fetch_bytes`. A write allocates without fetching, because L2 keeps track of the bytes it was given, and counts as a
hit (NVIDIA forum, topic 257458: a store is always a hit in L2). An atomic fetches and writes. A replaced line writes
its dirty sectors back, and so does the least recent dirty one of a set of which more are dirty than may be
(`L2.dirty_share`). Lines that are read to be evicted first (`Access.evict_first`) are replaced before all others; in a
full set they take the room of others up to `L2.evict_first_share` of it.

Where L2 has two partitions, each has half of the lines and is near to half of the SMs. A read looks in the near one. If
that lacks the line and is not its home, the read asks the home and keeps a copy, so what SMs of both halves read takes
the room of two lines. An own microbenchmark on an H200 of 60 MiB read data over and over: what each SM read for itself
stayed in L2 up to 40 to 44 MiB, and what all SMs read up to 28 to 30 MiB; above, all of it came from DRAM again. Writes
and atomics go to the home; a write leaves a copy, too, but not one that is to be evicted first
(tests/records/h200_l2_capacity.json). Which SMs are near to which half is not known: they are taken to alternate.

Some requests merge on their way to L2: see `merging`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L2
from gemmsim.memory.caches.l1 import L2Requests
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.coalescer import LINE_BYTES, SECTOR_BYTES
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS

_replay = native_loop("caches/l2_loop", "replay", "caches/lru", "requests/cache_operations")


@dataclass(frozen=True)
class L2State:
    """The lines of L2. Arrays are [sets, ways] (see `lru`); all sets of one partition come before those of the next.

    tags        int64 line numbers, -1 where empty
    valid       uint8 sectors of the line that are there, as bits
    dirty       uint8 sectors that DRAM does not have yet, as bits
    fetched_by  int64 group of the request that last fetched sectors of the line from DRAM, -1 for none
    partitions  number of partitions
    """

    tags: NDArray[np.int64]
    valid: NDArray[np.uint8]
    dirty: NDArray[np.uint8]
    fetched_by: NDArray[np.int64]
    partitions: int


# How L2 begins: empty (False), as an identical launch just before leaves it (True), or with these lines.
L2Start = bool | L2State


@dataclass(frozen=True)
class Asked:
    """What the replay knows of the requests of the L1s: arrays [L1 requests].

    group        int64 a number that is the same for requests made at about the same time
    evict_first  bool whether L2 is told to replace first what each is for
    """

    group: NDArray[np.int64]
    evict_first: NDArray[np.bool_]


@dataclass(frozen=True)
class L2Replay:
    """What L2 did with the requests of the L1s.

    missed        uint16 [L1 requests] sectors that each request made DRAM read
    in_flight     bool [L1 requests] whether sectors that the request found in L2 were still on their way from DRAM, for
                  a request of the same group
    written_back  how many dirty sectors were replaced
    of_stacks     how many of these were of local memory
    state         what L2 holds after the last request
    """

    missed: NDArray[np.uint16]
    in_flight: NDArray[np.bool_]
    written_back: int
    of_stacks: int
    state: L2State


def replay_l2(
    to_l2: L2Requests,
    group: NDArray[np.int64],
    l2: L2,
    near: NDArray[np.int64],
    begins: L2Start = False,
    evict_first: NDArray[np.bool_] | None = None,
) -> L2Replay:
    """Run what the L1s sent through L2.

    group   int64 [L1 requests] a number that is the same for requests made at about the same time
    near    int64 [SMs in use] the partition that each SM is near to
    begins  how L2 begins; True: run everything twice, and count the second time. Lines that are given stay as they are
    evict_first
            bool [L1 requests] whether L2 is told to replace first what each is for; None: it never is

    Raises GemmsimError where the lines are of an L2 of another size.
    """
    sets = max(1, l2.size_bytes // (LINE_BYTES * l2.ways * l2.partitions)) * l2.partitions
    shape = (sets, l2.ways)
    if isinstance(begins, L2State):
        if begins.tags.shape != shape or begins.partitions != l2.partitions:
            raise GemmsimError("an L2 cannot begin with the lines of an L2 of another size")
        tags, valid, dirty = begins.tags.copy(), begins.valid.copy(), begins.dirty.copy()
    else:
        tags, valid, dirty = np.full(shape, -1, np.int64), np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
    missed, in_flight = np.zeros(len(group), np.uint16), np.zeros(len(group), np.bool_)
    numbers = np.array([l2.fetch_bytes // SECTOR_BYTES, FIRST_ADDRESS // LINE_BYTES, *lines_of_set(l2), 0, 0])
    made = Asked(group, np.zeros(len(group), np.bool_) if evict_first is None else evict_first)
    for _ in range(2 if begins is True else 1):
        missed[:], in_flight[:], numbers[4:] = 0, False, 0
        state = L2State(tags, valid, dirty, np.full(shape, -1, np.int64), l2.partitions)
        _replay(to_l2, made, near, state, missed, in_flight, numbers)
    return L2Replay(missed, in_flight, int(numbers[4]), int(numbers[5]), state)


def lines_of_set(l2: L2) -> tuple[int, int]:
    """Return how many lines of a set may be dirty, and how many are for what is evicted first; both at least one."""
    return max(1, int(l2.ways * l2.dirty_share)), max(1, int(l2.ways * l2.evict_first_share))
