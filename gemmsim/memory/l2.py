"""The L2 cache: which of the sectors that the L1s ask for hit, and what goes to DRAM.

One cache for all SMs, 128-byte lines of four 32-byte sectors, LRU, empty at the start (Nsight Compute flushes it before
the kernel) or as an identical launch has left it. The SMs' streams are merged one line each in turn. A read fetches the
sectors that are missing, in aligned pieces of the GPU's `L2.fetch_bytes`; a write allocates without fetching, as L2
keeps bytes it was given, and counts as a hit (NVIDIA forum, topic 257458: a store is always a hit in L2); an atomic
fetches and writes. A replaced line writes its dirty sectors back.

Not modelled: two partitions that may each hold a copy. Which requests merge on their way: see `merging`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.coalescer import LINE_BYTES, SECTOR_BYTES
from gemmsim.memory.engine import engine
from gemmsim.memory.l1 import ToL2

_replay = engine("l2", "replay", "lru", "../kinds")


@dataclass(frozen=True)
class L2Replay:
    """missed: uint16 [accesses] sectors that each access made DRAM read; in_flight: bool [accesses] whether some were
    on their way because of another access of its group; written_back: sectors that left dirty."""

    missed: NDArray[np.uint16]
    in_flight: NDArray[np.bool_]
    written_back: int


def replay_l2(
    to_l2: ToL2,
    group: NDArray[np.int64],
    size_bytes: int,
    ways: int,
    fetch_bytes: int = SECTOR_BYTES,
    warm: bool = False,
) -> L2Replay:
    """Run what the L1s sent through L2; group: int64 [accesses], equal for those that happen at about the same time.

    fetch_bytes: what DRAM is read in, 32 to 128;
    warm: run it twice, and count the second time.
    """
    sets = max(1, size_bytes // (LINE_BYTES * ways))
    state = np.zeros((2, sets, ways), np.uint8)
    missed, in_flight = np.zeros(len(group), np.uint16), np.zeros(len(group), np.bool_)
    tags = np.full((sets, ways), -1, np.int64)
    for _ in range(2 if warm else 1):
        missed[:], in_flight[:] = 0, False
        written = _replay(
            to_l2.line, to_l2.mask, to_l2.kind, to_l2.access, to_l2.start,
            tags, state[0], state[1], np.full((sets, ways), -1, np.int64), group,
            fetch_bytes // SECTOR_BYTES, missed, in_flight,
        )  # fmt: skip
    return L2Replay(missed, in_flight, int(written))
