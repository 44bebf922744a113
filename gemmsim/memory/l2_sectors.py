"""Finds what L2 and DRAM do for each request: by a replay where every block was executed, else by an estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L2
from gemmsim.memory.caches.l1 import L2Requests
from gemmsim.memory.caches.l2 import L2Start, L2State, replay_l2
from gemmsim.memory.caches.stack_reuse import StackTraffic
from gemmsim.memory.grid.footprint import Footprint
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.sector_assignment import (
    Tiles,
    round_to_sectors,
    sectors_new_to_block,
)
from gemmsim.memory.requests.coalescer import SECTOR_BYTES, Coalesced
from gemmsim.trace.types import Launch

_L1_SAMPLED = (
    "L1: each executed block was replayed beside the blocks that would share its SM, after a wave of their neighbours"
)
_L2_SAMPLED = "L2 and DRAM: estimated from the sectors that each wave of blocks touches, LRU between waves"
_L2_BOUND = (
    "L2 and DRAM: where blocks that were not executed access memory is unknown (it takes executed neighbours along each"
    " grid axis, a constant step apart), so DRAM reads are the smaller of what the L1s miss and the arrays' size: too "
    "few where L2 cannot hold what blocks share"
)

# Of groups of so many SMs, three in four have some that are near to each of L2's two partitions.
_FEWEST_SHARERS = 3

_L2_LEFT_OUT = (
    "L2: as the launch is sampled, it begins with an empty L2 instead of what the launch before left there: too many "
    "DRAM reads"
)


@dataclass(frozen=True)
class L2Sectors:
    """What L2 and DRAM did for each request that goes through L1, and in the whole launch.

    dram         uint16 [requests] sectors that DRAM reads for each request
    dram_shared  bool [requests] whether the request waits for sectors that DRAM reads for other blocks, too
    footprint    what DRAM reads and writes in the whole launch, by instruction
    notes        what was assumed
    state        what L2 holds when the launch has ended; None where that is not known, because the launch was sampled
    """

    dram: NDArray[np.uint16]
    dram_shared: NDArray[np.bool_]
    footprint: Footprint
    notes: tuple[str, ...] = ()
    state: L2State | None = None


@dataclass(frozen=True)
class Fetched:
    """What L2 is to deliver to the L1s.

    requests, coalesced  the requests that go through L1, and their shapes
    sectors              int32 [requests] sectors that L2 is to deliver for each request
    local                bool [requests] which requests are to local memory
    """

    requests: L1Requests
    coalesced: Coalesced
    sectors: NDArray[np.int32]
    local: NDArray[np.bool_]

    def new_to_block(self, l2: L2) -> NDArray[np.int32]:
        """Return the sectors that DRAM delivers where no other block asks for them: int32 [requests]."""
        return sectors_new_to_block(self.sectors, self.requests, self.coalesced, l2.fetch_bytes // SECTOR_BYTES)


def replayed_l2_sectors(
    fetched: Fetched,
    to_l2: L2Requests,
    generation: NDArray[np.int64],
    sms: NDArray[np.int64],
    l2: L2,
    instructions: int,
    begins: L2Start,
) -> L2Sectors:
    """Replay L2 with the requests of all blocks of the grid.

    The replay says which block is the first to ask for a sector. On a GPU that changes from launch to launch, and a few
    blocks are timed for all. So the blocks of a wave share equally what DRAM reads for them when they execute an
    instruction for the n-th time. Local memory stays as replayed, since no two blocks share it.

    to_l2       what the L1s ask of L2 for these requests
    generation  int64 [requests] wave of blocks (all resident on the GPU at once) that makes each request
    sms         int64 [SMs in use] the numbers of the SMs
    """
    requests, local = fetched.requests, fetched.local
    # Blocks of a wave move in step: where one of them makes DRAM read, the others soon ask for the same.
    key = (generation * instructions + requests.pc) * (1 << 32) + requests.execution_number()
    _, group = np.unique(key, return_inverse=True)
    group = group.reshape(-1)
    replayed = replay_l2(to_l2, group, l2, sms % l2.partitions, begins, requests.evict_first)
    read = np.bincount(requests.pc, replayed.missed, minlength=instructions).astype(np.float64)
    footprint = Footprint(read, np.zeros(0), float(replayed.written_back), float(replayed.of_stacks))
    delivered = fetched.new_to_block(l2)
    delivered = np.where(
        delivered > 0, delivered, fetched.sectors
    )  # L2 may have lost what the block has asked for before
    of_group = np.maximum(np.bincount(group, delivered), 1)
    waits = np.where(replayed.in_flight | (replayed.missed > 0), delivered, 0)
    shares = (np.minimum(np.bincount(group, sectors) / of_group, 1.0)[group] for sectors in (replayed.missed, waits))
    dram, dram_shared = _shared_out(requests, delivered, *shares)
    dram = np.where(local, replayed.missed, dram)
    return L2Sectors(dram, np.where(local, replayed.in_flight, dram_shared), footprint, state=replayed.state)


def estimated_l2_sectors(
    launch: Launch,
    fetched: Fetched,
    asked: NDArray[np.float64],
    estimate: Callable[[], Footprint | None],
    l2: L2,
    begins: L2Start,
) -> L2Sectors:
    """Estimate what DRAM does for each request, from the footprint of the grid.

    asked     float64 [instructions] sectors that L2 is to deliver in the whole launch
    estimate  waits for the footprint, and returns it; None: it is not known
    """
    delivered, footprint = fetched.new_to_block(l2), estimate()
    notes: tuple[str, ...] = (_L1_SAMPLED, _L2_BOUND if footprint is None else _L2_SAMPLED)
    if isinstance(begins, L2State):
        notes = (*notes, _L2_LEFT_OUT)
    if footprint is None:
        # What blocks share is in each partition of L2.
        footprint = _arrays_once(launch, asked, l2.size_bytes // l2.partitions if begins is True else 0)
    share = np.divide(footprint.read_sectors, asked, out=np.zeros_like(asked), where=asked > 0)
    share = np.minimum(share, 1.0)
    waits = np.maximum(footprint.new_share, share)
    pc = fetched.requests.pc
    shared_out = _shared_out(fetched.requests, delivered, share[pc], waits[pc])
    return L2Sectors(*shared_out, footprint, notes)


def _shared_out(
    requests: L1Requests, delivered: NDArray[np.int32], read: NDArray[np.float64], waits: NDArray[np.float64]
) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
    """Return what DRAM reads for each request, and for which requests it reads for other blocks, too.

    delivered  int32 [requests] sectors that DRAM would deliver for each request if it did so for its block alone
    read       float64 [requests] share of these that it delivers
    waits      float64 [requests] share of these that a request waits for, whoever made DRAM read them
    """
    tiles = Tiles(requests)
    dram = tiles.assign(delivered, read)
    # Blocks of a wave move in step: those ahead wait for DRAM, and the others catch up with them.
    alone = waits < _FEWEST_SHARERS * read
    return dram, (tiles.assign(delivered, waits) > 0) & ((dram == 0) | ~alone)


def with_stack_sectors(
    found: L2Sectors,
    stacks: StackTraffic,
    requests: L1Requests,
    weight: NDArray[np.float64],
    stored: float,
) -> L2Sectors:
    """Return what L2 and DRAM do, with local memory as a replay of it says.

    weight  float64 [requests] how many requests of the launch each stands for; 0 for those to arrays
    stored  sectors that the launch stores to local memory
    """
    footprint, local = found.footprint, weight > 0
    read = np.bincount(requests.pc, weight * stacks.missed, len(footprint.read_sectors))
    of_stacks = np.zeros(len(read), np.bool_)
    of_stacks[requests.pc[local]] = True
    replaced = stored * stacks.written_share
    return replace(
        found,
        dram=np.where(local, round_to_sectors(stacks.missed, requests.pc), found.dram),
        dram_shared=found.dram_shared & ~local,
        footprint=Footprint(
            np.where(of_stacks, read, footprint.read_sectors),
            footprint.new_share,
            footprint.written_sectors + replaced,
            replaced,
        ),
    )


def _arrays_once(launch: Launch, asked: NDArray[np.float64], held_bytes: int) -> Footprint:
    """Return the footprint of a launch for which DRAM reads each array at most once. All these reads together are split
    among the instructions in proportion to what each asks for.

    held_bytes  L2 capacity that a launch before has filled: arrays that fit into it together are not read at all
    """
    bytes_of_arrays = sum(a.extent_bytes for a in launch.args if a.shape)
    total = float(asked.sum())
    if bytes_of_arrays <= held_bytes:
        bytes_of_arrays = 0
    read = asked * min(1.0, bytes_of_arrays / SECTOR_BYTES / total) if total else asked
    return Footprint(read, np.zeros_like(asked), 0.0)
