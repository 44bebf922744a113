"""The L2 cache: which of the sectors that the L1s ask for hit, and what goes to DRAM.

128-byte lines of four 32-byte sectors, LRU, empty at the start (Nsight Compute flushes it before
the kernel) or as an identical launch has left it. The SMs' streams are merged one line each in turn, and
the order changes from turn to turn: no SM, and none of a few neighbours, is always the one that finds what they share
absent. A read fetches the
sectors that are missing, in aligned pieces of the GPU's `L2.fetch_bytes`; a write allocates without fetching, as L2
keeps bytes it was given, and counts as a hit (NVIDIA forum, topic 257458: a store is always a hit in L2); an atomic
fetches and writes. A replaced line writes its dirty sectors back.

Where L2 has two partitions, each has half of the lines and is near to half of the SMs. A read looks in the near one; if
that lacks the line and is not its home, it asks the home, and keeps a copy: what SMs of both halves read takes the room
of two lines. Own microbenchmark on an H200 of 60 MiB, data read over and over: what each SM reads for itself is kept up
to 40 to 44 MiB, what all SMs read up to 28 to 30 MiB; above, all of it comes from DRAM again. Writes and atomics go to
the home. Which SMs are near to which half is not known: they are taken to alternate.

Which requests merge on their way: see `merging`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.caches.l1 import L2Requests
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.coalescer import LINE_BYTES, SECTOR_BYTES

_replay = native_loop("caches/l2_loop", "replay", "caches/lru", "requests/cache_operations")


@dataclass(frozen=True)
class L2Replay:
    """missed: uint16 [accesses] sectors that each access made DRAM read; in_flight: bool [accesses] whether some were
    on their way because of another access of its group; written_back: sectors that left dirty."""

    missed: NDArray[np.uint16]
    in_flight: NDArray[np.bool_]
    written_back: int


def replay_l2(
    to_l2: L2Requests,
    group: NDArray[np.int64],
    size_bytes: int,
    ways: int,
    fetch_bytes: int = SECTOR_BYTES,
    warm: bool = False,
    partitions: int = 1,
    near: NDArray[np.int64] | None = None,
) -> L2Replay:
    """Run what the L1s sent through L2; group: int64 [accesses], equal for those that happen at about the same time.

    fetch_bytes: what DRAM is read in, 32 to 128;
    warm: run it twice, and count the second time;
    near: int64 [SMs in use] the one of the `partitions` that each SM is near to; None: the first.
    """
    near = np.zeros(len(to_l2.start) - 1, np.int64) if near is None else near
    sets = max(1, size_bytes // (LINE_BYTES * ways * partitions)) * partitions
    state = np.zeros((2, sets, ways), np.uint8)
    missed, in_flight = np.zeros(len(group), np.uint16), np.zeros(len(group), np.bool_)
    tags = np.full((sets, ways), -1, np.int64)
    for _ in range(2 if warm else 1):
        missed[:], in_flight[:] = 0, False
        written = _replay(
            to_l2.line, to_l2.mask, to_l2.kind, to_l2.access, to_l2.start, near, partitions,
            tags, state[0], state[1], np.full((sets, ways), -1, np.int64), group,
            fetch_bytes // SECTOR_BYTES, missed, in_flight,
        )  # fmt: skip
    return L2Replay(missed, in_flight, int(written))
