"""Sends the requests of a launch through L1, L2 and DRAM: replayed for whole traces, estimated from samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.caches.l1 import replay_l1
from gemmsim.memory.caches.l1_cache import l1_cache
from gemmsim.memory.caches.l2 import L2Start, L2State
from gemmsim.memory.caches.merging import competing_blocks, in_step, kept, kept_by_tiles
from gemmsim.memory.caches.slices import atomic_us
from gemmsim.memory.caches.stack_reuse import arrays_store, stack_traffic
from gemmsim.memory.dram_writes import written_to_dram
from gemmsim.memory.grid.block_places import block_places
from gemmsim.memory.grid.footprint import Wave, estimate
from gemmsim.memory.grid.l1_requests import L1Requests, l1_requests_of
from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.grid.residents import residents_of_grid
from gemmsim.memory.grid.sample_residents import SampledBlocks, residents_of_sample
from gemmsim.memory.grid.sector_assignment import round_to_sectors, stored_once
from gemmsim.memory.l2_sectors import (
    Fetched,
    estimated_l2_sectors,
    replayed_l2_sectors,
    with_stack_sectors,
)
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE, WRITE_PAST_L1
from gemmsim.memory.requests.coalescer import Coalesced
from gemmsim.memory.requests.joined_stores import JoinedStores, joined_stores
from gemmsim.memory.requests.multicast import receivers
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.memory.requests.sums import weighted_sums
from gemmsim.memory.types import DramTraffic
from gemmsim.support.sorting import distinct, new_rows
from gemmsim.support.threads import in_background
from gemmsim.trace.types import Launch, WarpTrace

_LOADS = ("ld", "ldgsts", "tma_ld")
_STORES = ("st", "red", "tma_st", "tma_red")
_WORTH_A_THREAD = 200_000  # from so many requests on; to find the sectors of these takes some 50 ms


@dataclass(frozen=True)
class CacheResults:
    """What the caches did, for each memory record of the trace and for each instruction over the whole launch.

    The values of records are 0 for shared memory and for blocks of weight 0.

    l2              uint16 [records] sectors that the record sends to L2 or asks of it
    dram            uint16 [records] sectors that DRAM reads for the record, or that it writes sooner or later because
                    of it. Where L2 begins empty, launches on other data are taken to run before and after this one:
                    what each leaves in L2 is written while the next ones run
    dram_shared     bool [records] whether it waits for sectors that DRAM reads for other blocks, too
    atomic_us       float32 [records] what it adds to the time of the slice that works longest on atomics
    l1_hit_sectors  float64 [instructions] sectors that hit L1
    l2_sectors      float64 [instructions] sectors sent to L2 or asked of it
    dram_sectors    float64 [instructions] sectors read from DRAM
    merged_sectors  float64 [instructions] of `l2_sectors`, those that L2 reads with others: of another SM's request, or
                    for the same asynchronous copy
    may_merge       float64 [instructions] as `merged_sectors`, but those of TMA's tiles as if no blocks competed for an
                    SM: how many of them do merge follows from when they are loaded (`sm.units.tma`)
    l2_requests     requests of the whole launch that L2 serves, of up to four sectors of a line each
    traffic         sectors that DRAM reads and writes
    notes           what was assumed
    l2_after        what L2 holds when the launch has ended; None where that is not known
    joined          the stores that are sent to L2 together; None where there are none
    """

    l2: NDArray[np.uint16]
    dram: NDArray[np.uint16]
    dram_shared: NDArray[np.bool_]
    atomic_us: NDArray[np.float32]
    l1_hit_sectors: NDArray[np.float64]
    l2_sectors: NDArray[np.float64]
    dram_sectors: NDArray[np.float64]
    merged_sectors: NDArray[np.float64]
    may_merge: NDArray[np.float64]
    l2_requests: float
    traffic: DramTraffic
    notes: tuple[str, ...]
    l2_after: L2State | None
    joined: JoinedStores | None


def simulate_caches(
    trace: WarpTrace,
    launch: Launch,
    placement: Placement,
    shapes: Shapes,
    accesses: dict[int, Access],
    gpu: GpuSpec,
    l1_bytes: int,
    begins: L2Start = False,
) -> CacheResults:
    """Replay a trace that has every block of the grid, or estimate the caches' work from one that has some of them.

    placement  where the blocks of the grid run
    shapes     the `Shapes` of the trace, that is its (instruction, pattern) pairs
    accesses   the executed memory instructions, by static index
    l1_bytes   L1 cache of one SM
    begins     how L2 begins
    """
    coalesced, instructions, before = shapes.coalesced, trace.executed.shape[1], placement.generation
    requests, blocks, relation = l1_requests_of(trace, shapes, accesses), trace.blocks, trace.relation
    of_stacks = [index for index, access in accesses.items() if access.space == "local"]
    local = np.isin(requests.pc, of_stacks)
    wave = Wave(gpu.sm.count * placement.resident_blocks_per_sm, gpu.l2, begins is True)
    if relation is None:
        residents, footprint, before = residents_of_grid(blocks, placement), None, before[blocks]
    else:
        sample = _sampled(trace, requests, coalesced)
        residents = residents_of_sample(sample, relation, placement, l1_bytes // gpu.l1.line_bytes, not of_stacks)
        worth, stores = len(requests.pc) > _WORTH_A_THREAD, arrays_store(requests, local)
        footprint = in_background(lambda: estimate(relation, stores, coalesced, instructions, wave), worth)
    # What is asked of L2 one after the other may be hundreds of megabytes. Of a sample, only local memory is replayed.
    listed = None if footprint is None else np.isin(shapes.pc, of_stacks)
    l1 = replay_l1(requests, residents, coalesced, l1_cache(l1_bytes, gpu.l1), listed)
    made = requests.of_blocks(np.bincount(residents.block, residents.times, minlength=len(blocks)))
    asked, hit, weight = coalesced.sectors[requests.shape], l1.hits / made, trace.record_weight[requests.record]
    joined, together, joins = _together(trace, shapes, accesses, requests, gpu, _warps(launch, placement, gpu))
    sent = np.where(requests.operation == READ, asked - hit, asked) - together
    fetched = np.where((requests.operation == WRITE) | (requests.operation == WRITE_PAST_L1), 0, sent)

    def by_instruction(sectors: NDArray) -> NDArray[np.float64]:
        return weighted_sums(requests.pc, weight, sectors, instructions)

    def by_record(values: NDArray) -> NDArray:
        return _by_record(values, requests.record, len(trace.record_pc))

    to_fetch = by_instruction(fetched)
    to_deliver = Fetched(requests, coalesced, round_to_sectors(fetched, requests.pc).astype(np.int32), local)
    # What does not need the footprint comes first: it may still be estimated.
    stored, shares = stored_once(requests, coalesced), _merged(trace, requests, accesses, gpu, placement)
    is_read = np.isin(requests.operation, (READ, READ_PAST_L1))
    asks = l1.l2_requests / made * (1 - is_read * shares[0][requests.pc]) + shapes.further_packets[requests.shape]
    asks[joins & (sent == 0)] = 0.0
    of_others = by_instruction(np.where(is_read, sent, 0)) * shares
    again, sent_again, of_copies = _sent_again(trace, shapes)
    of_instructions = {"l1_hit_sectors": by_instruction(hit), "l2_sectors": by_instruction(sent) + sent_again}
    of_record = (by_record(round_to_sectors(sent, requests.pc)) + again).astype(np.uint16)
    l2_requests, to_l2, stacks, to_stacks = float(weight @ asks), l1.to_l2, None, 0.0
    if footprint is not None and local.any():
        stacks = stack_traffic(to_l2, made, residents, gpu.l2, min(len(placement.sm), wave.blocks))
        to_stacks = float(weight @ np.where(local & (requests.operation == WRITE), asked, 0))
    # A number for each request takes tens of megabytes. While the footprint is estimated, most memory is in use.
    del l1, made, asked, hit, sent, fetched, is_read, asks, again
    if footprint is None:
        generation, sms = requests.of_blocks(blocks) // wave.blocks, residents.sm
        l2 = replayed_l2_sectors(to_deliver, to_l2, generation, sms, gpu.l2, instructions, begins)
    else:
        l2 = estimated_l2_sectors(launch, to_deliver, to_fetch, footprint, gpu.l2, begins)
        if stacks is not None:
            l2 = with_stack_sectors(l2, stacks, requests, np.where(local, weight, 0.0), to_stacks)
    read, from_dram = _reads(l2.footprint.read_sectors, to_fetch, footprint is None)
    merged_sectors, may_merge = np.minimum(of_others, to_fetch - read) + of_copies * (
        1 - 1 / max(1, gpu.l2.merged_requests)
    )
    return CacheResults(
        **of_instructions,
        l2=of_record,
        dram=by_record(l2.dram + written_to_dram(stored, requests, coalesced, local, weight, l2.footprint, begins)),
        dram_shared=by_record(l2.dram_shared),
        dram_sectors=read,
        merged_sectors=merged_sectors,
        may_merge=may_merge,
        atomic_us=by_record(atomic_us(requests, shapes.packets, accesses, weight, relation, before, gpu.l2)),
        l2_requests=l2_requests,
        traffic=DramTraffic(from_dram, l2.footprint.written_sectors),
        notes=l2.notes,
        l2_after=l2.state,
        joined=joined,
    )


def _sampled(trace: WarpTrace, requests: L1Requests, coalesced: Coalesced) -> SampledBlocks:
    """Return the sampled blocks, with the lines that all requests of each ask L1 for."""
    blocks = trace.blocks
    lines = np.bincount(requests.of_blocks(np.arange(len(blocks))), coalesced.lines[requests.shape], len(blocks))
    return SampledBlocks(blocks, trace.weight, lines, trace.repeats is not None)


def _warps(launch: Launch, placement: Placement, gpu: GpuSpec) -> int:
    """Return how many warps an SM holds at once."""
    return min(placement.resident_blocks_per_sm, -(-launch.blocks // gpu.sm.count)) * launch.warps_per_block


def _together(
    trace: WarpTrace, shapes: Shapes, accesses: dict[int, Access], requests: L1Requests, gpu: GpuSpec, warps: int
) -> tuple[JoinedStores | None, NDArray[np.int16] | int, NDArray[np.bool_] | bool]:
    """Return the stores that are sent together, how many sectors of each request are sent with an earlier one, and
    whether it is one of those that may be."""
    joined = joined_stores(trace, shapes, accesses, gpu, warps)
    if joined is None:
        return None, 0, False
    return joined, joined.sectors[requests.record], joined.joins[requests.record]


def _by_record(values: NDArray, record: NDArray[np.int64], records: int) -> NDArray:
    """Return the values [requests] at the places `record`, and 0 elsewhere: [records], which takes no room where all
    are 0."""
    if not values.any():
        return np.broadcast_to(values.dtype.type(0), records)
    out = np.zeros(records, values.dtype)
    out[record] = values
    return out


def _reads(
    read: NDArray[np.float64], to_fetch: NDArray[np.float64], replayed: bool
) -> tuple[NDArray[np.float64], float]:
    """Return the sectors that each instruction waits for from DRAM, and how many DRAM reads.

    What DRAM reads beside the sectors that an instruction asks for is counted for those that ask for it soon after: on
    an H200 each such sector is a miss of L2, too (a thread that goes through a row of its own, four bytes at a time,
    with loads unrolled: tests/sources/everyday.cu, gemv_thread). Which instructions those are is not followed: all that
    find something in L2 share it.

    read      float64 [instructions] sectors that DRAM reads when the instruction asks for what L2 lacks
    to_fetch  float64 [instructions] sectors that L2 is asked for
    replayed  whether these are of every block; of a sample, what is beyond is no more than an error of the estimate
    """
    waits = np.minimum(read, to_fetch)
    if not replayed:
        return waits, float(waits.sum())
    beside, room = float((read - waits).sum()), to_fetch - waits
    return waits + room * min(1.0, beside / max(float(room.sum()), 1.0)), float(read.sum())


def _sent_again(
    trace: WarpTrace, shapes: Shapes
) -> tuple[NDArray[np.int64] | int, NDArray[np.float64], NDArray[np.float64]]:
    """Return how many sectors of each record go to L2 or come from it once more, int64 [records] or 0 of all, how many
    of each instruction, and how many of these asynchronous copies ask for, float64 [instructions] each."""
    instructions = trace.executed.shape[1]
    of_copies: NDArray = np.zeros(instructions)
    of_atomics: NDArray = np.zeros(instructions)
    again: NDArray[np.int64] | int = 0
    if trace.copies is not None and trace.copies.again.any():
        again = trace.copies.again.astype(np.int64)
        of_copies = weighted_sums(trace.record_pc, trace.record_weight, again, instructions)
    if shapes.again.any():
        packets = shapes.again[shapes.of_record]
        again = again + packets
        of_atomics = weighted_sums(trace.record_pc, trace.record_weight, packets, instructions)
    return again, of_copies + of_atomics, of_copies


def _merged(
    trace: WarpTrace,
    requests: L1Requests,
    accesses: dict[int, Access],
    gpu: GpuSpec,
    placement: Placement,
) -> NDArray[np.float64]:
    """Return the share of the reads of each instruction that reach L2 in one request with another SM's, and the share
    that may, where it is the time of a load that decides (`CacheResults.may_merge`): [2, instructions]."""
    merged, used = np.zeros((2, trace.executed.shape[1])), np.unique(requests.pc)
    merges = gpu.l2.merged_requests if len(gpu.sm.gpc_sms) > 1 else 1
    places = block_places(trace, requests, placement.first)
    tiles = np.isin(used, [index for index, access in accesses.items() if access.op == "tma_ld"])
    by_loads = kept(placement, _steps(trace, accesses, placement), gpu.l2.drift_steps)
    results = _results(trace, accesses, placement) if tiles.any() else 0.0
    alike = in_step(places[:, used], placement, merges)
    for share, competing in zip(merged, (competing_blocks(placement), 1), strict=True):
        by_tiles = kept_by_tiles(results, gpu.tma.merged_later, competing)
        share[used] = alike * np.where(tiles, by_tiles, by_loads)
    # Each thread has its own local memory, and multicast requests join none.
    merged[:, [index for index, access in accesses.items() if access.space == "local"]] = 0.0
    merged[:, receivers(trace) > 1] = 0.0
    return merged


def _steps(trace: WarpTrace, accesses: dict[int, Access], placement: Placement) -> float:
    """Return how often a warp executes the load that is executed most often, in all blocks that come to its place."""
    loads = [index for index, access in accesses.items() if not access.on_chip and access.op in _LOADS]
    if not loads:
        return 0.0
    executed = trace.weight @ trace.executed[:, loads]
    return float(executed.max()) / (len(placement.sm) * trace.warps_per_block) * placement.generations


def _results(trace: WarpTrace, accesses: dict[int, Access], placement: Placement) -> float:
    """Return how often warps store results, in all blocks that come to a place: how often those warps that execute it
    execute the store that they execute the least often. A block without loop stores each result by another one.
    """
    stores = [index for index, access in accesses.items() if access.space == "global" and access.op in _STORES]
    warp = np.repeat(np.arange(len(trace.record_start) - 1), np.diff(trace.record_start))
    begins = np.flatnonzero(new_rows(warp, trace.record_pc))  # a bulk store leaves several records, one after another
    begins = begins[np.isin(trace.record_pc[begins], stores)]
    pc, weight = trace.record_pc[begins], trace.record_weight[begins]
    stored, by_warp = distinct(pc, warp[begins])
    executed = np.bincount(pc, weight, trace.executed.shape[1])
    warps = np.bincount(stored, trace.weight[by_warp // trace.warps_per_block], trace.executed.shape[1])
    times = executed[warps > 0] / warps[warps > 0]
    return float(times.min()) * placement.generations if len(times) else 0.0
