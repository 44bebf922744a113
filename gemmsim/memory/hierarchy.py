"""L1, L2 and DRAM one behind the other, for whole traces and for samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.caches.dram import DramTraffic
from gemmsim.memory.caches.l1 import replay_l1
from gemmsim.memory.caches.l2 import replay_l2
from gemmsim.memory.caches.merging import merged_share
from gemmsim.memory.grid.block_steps import block_steps_of
from gemmsim.memory.grid.counted_blocks import counted_requests, counted_trace
from gemmsim.memory.grid.footprint import Footprint, estimate
from gemmsim.memory.grid.l1_requests import L1Requests, l1_requests_of
from gemmsim.memory.grid.placement import place
from gemmsim.memory.grid.residents import residents_of_grid
from gemmsim.memory.grid.sample_residents import residents_of_sample
from gemmsim.memory.grid.sector_assignment import brought_sectors, passes, spread, together
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE
from gemmsim.memory.requests.coalescer import SECTOR_BYTES
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.support.dtypes import DTYPES
from gemmsim.support.threads import in_background
from gemmsim.trace.types import Launch, WarpTrace

_WORTH_A_THREAD = 200_000  # accesses, whose sectors take some 50 ms
_L1_SAMPLED = (
    "L1: each executed block was replayed beside the blocks that would share its SM, after a wave of their neighbours"
)
_L2_SAMPLED = "L2 and DRAM: estimated from the sectors that each wave of blocks touches, LRU between waves"
_L2_BOUND = (
    "L2 and DRAM: where blocks that were not executed access memory is unknown (it takes executed neighbours along each"
    " grid axis, a constant step apart), so DRAM reads are the smaller of what the L1s miss and the arrays' size: too "
    "few where L2 cannot hold what blocks share"
)


@dataclass(frozen=True)
class Caches:
    """What the caches did.

    l2, dram        uint16 [records of `counted_trace`] sectors sent to L2 and read from DRAM for it; 0 for
                    shared memory
    in_flight       bool [likewise] whether sectors that it finds in L2 are still on their way from DRAM
    l1_hit_sectors, l2_sectors, dram_sectors, merged_sectors  float64 [instructions] of the whole launch
    l2_requests     that L2 serves, of the whole launch, up to four sectors of a line each
    """

    l2: NDArray[np.uint16]
    dram: NDArray[np.uint16]
    in_flight: NDArray[np.bool_]
    l1_hit_sectors: NDArray[np.float64]
    l2_sectors: NDArray[np.float64]
    dram_sectors: NDArray[np.float64]
    merged_sectors: NDArray[np.float64]
    l2_requests: float
    traffic: DramTraffic
    notes: tuple[str, ...]


def run_caches(
    trace: WarpTrace,
    launch: Launch,
    shapes: Shapes,
    accesses: dict[int, Access],
    gpu: GpuSpec,
    l1_bytes: int,
    resident_blocks_per_sm: int,
    warm: bool = False,
) -> Caches:
    """Replay a trace that has every block of the grid, estimate from one that has some. warm: L2 begins as an identical
    launch has left it."""
    executed, every = trace, l1_requests_of(trace, shapes, accesses)
    steps = block_steps_of(trace, launch, every)
    trace = counted_trace(trace)
    requests = counted_requests(every, trace)
    whole = len(trace.blocks) == launch.blocks and bool((trace.weight == 1).all())
    per_block = np.diff(requests.start[:: trace.warps_per_block])
    placement = place(launch.blocks, gpu.sm, resident_blocks_per_sm)
    merge = gpu.l2.merged_requests if len(gpu.sm.gpc_sms) > 1 else 1
    joined = merged_share(launch, steps, placement, resident_blocks_per_sm, merge)
    joined[[index for index, access in accesses.items() if access.space == "local"]] = 0.0  # each thread's own
    if whole:
        residents = residents_of_grid(trace, placement)
    else:
        lookups = np.bincount(
            np.repeat(np.arange(len(trace.blocks)), per_block), shapes.coalesced.lines[requests.shape]
        )
        residents = residents_of_sample(trace, launch, steps, placement, resident_blocks_per_sm, lookups)
    in_wave = gpu.sm.count * resident_blocks_per_sm
    estimated_beside = in_background(
        lambda: estimate(executed, launch, every, shapes.coalesced, steps, in_wave, gpu.l2, warm),
        worth_a_thread=not whole and len(every.sector) > _WORTH_A_THREAD,
    )
    l1 = replay_l1(requests, residents, shapes.coalesced, trace.warps_per_block, l1_bytes, gpu.l1.ways)
    # Per access: sums over the members of the replay that made it, and how many these were.
    made = np.bincount(residents.block, residents.times, minlength=len(trace.blocks))
    times = np.repeat(made, per_block)
    weight = np.repeat(trace.weight, per_block)
    sectors = shapes.coalesced.sectors[requests.shape]
    hit = l1.hits / times
    sent = np.where(requests.kind == READ, sectors - hit, sectors)
    fetched = np.where(requests.kind == WRITE, 0, sent)
    is_read = (requests.kind == READ) | (requests.kind == READ_PAST_L1)
    read_sectors = np.where(is_read, sent, 0)
    asked = _by_instruction(trace, requests, weight * fetched)
    notes: tuple[str, ...] = ()
    if whole:
        # Blocks of a wave move in step: where one of them makes DRAM read, the others soon ask for the same.
        block = np.repeat(trace.blocks, per_block)
        _, group = np.unique(
            (block // in_wave * trace.executed.shape[1] + requests.pc) * (1 << 32)
            + passes(requests.pc, requests.start),
            return_inverse=True,
        )
        l2, near = gpu.l2, np.unique(residents.sm) % gpu.l2.partitions
        replayed = replay_l2(
            l1.to_l2, group.reshape(-1), l2.size_bytes, l2.ways, l2.fetch_bytes, warm, l2.partitions, near
        )
        dram, in_flight = replayed.missed, replayed.in_flight
        footprint = Footprint(_by_instruction(trace, requests, dram), np.zeros(0), float(replayed.written_back))
    else:
        estimated = estimated_beside()
        notes = (_L1_SAMPLED, _L2_BOUND if estimated is None else _L2_SAMPLED)
        # What blocks share is in each partition of L2.
        kept = gpu.l2.size_bytes // gpu.l2.partitions if warm else 0
        footprint = _bound(launch, asked, kept) if estimated is None else estimated
        share = np.divide(footprint.read_sectors, asked, out=np.zeros_like(asked), where=asked > 0)
        brought = brought_sectors(
            spread(fetched, requests.pc).astype(np.int64),
            requests,
            shapes.coalesced,
            trace.warps_per_block,
            gpu.l2.fetch_bytes // SECTOR_BYTES,
        )
        share = np.minimum(share, 1.0)
        dram = together(brought, share, requests.pc, requests.start, trace.warps_per_block)
        # Blocks of a wave move in step: those ahead wait for DRAM, and the others catch up with them.
        waiting = np.maximum(footprint.new_share, share)
        waits = together(brought, waiting, requests.pc, requests.start, trace.warps_per_block)
        in_flight = (waits > 0) & (dram == 0)
    read = np.minimum(footprint.read_sectors, asked)
    return Caches(
        l2=_by_record(trace, requests, spread(sent, requests.pc)),
        dram=_by_record(trace, requests, dram),
        in_flight=_by_record(trace, requests, in_flight.astype(np.uint16)) > 0,
        l1_hit_sectors=_by_instruction(trace, requests, weight * hit),
        l2_sectors=_by_instruction(trace, requests, weight * sent),
        dram_sectors=read,
        merged_sectors=np.minimum(_by_instruction(trace, requests, weight * read_sectors) * joined, asked - read),
        l2_requests=float(weight @ (l1.l2_requests / times * np.where(is_read, 1 - joined[requests.pc], 1.0))),
        traffic=DramTraffic(float(read.sum()), footprint.written_sectors),
        notes=notes,
    )


def _bound(launch: Launch, asked: NDArray[np.float64], kept_bytes: int) -> Footprint:
    """DRAM reads each array at most once; instructions share what that is in proportion.

    kept_bytes  L2 that a launch before has filled: arrays that fit in it are not read at all
    """
    bytes_of_arrays = sum(int(np.prod(a.shape)) * DTYPES[a.dtype].item_bytes for a in launch.args if a.shape)
    total = float(asked.sum())
    if bytes_of_arrays <= kept_bytes:
        bytes_of_arrays = 0
    read = asked * min(1.0, bytes_of_arrays / SECTOR_BYTES / total) if total else asked
    return Footprint(read, np.zeros_like(asked), 0.0)


def _by_instruction(trace: WarpTrace, requests: L1Requests, values: NDArray) -> NDArray[np.float64]:
    return np.bincount(requests.pc, values, minlength=trace.executed.shape[1]).astype(np.float64)


def _by_record(trace: WarpTrace, requests: L1Requests, values: NDArray[np.uint16]) -> NDArray[np.uint16]:
    out = np.zeros(len(trace.record_pc), np.uint16)
    out[requests.record] = values
    return out
