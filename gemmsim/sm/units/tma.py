"""The TMA unit of an SM, which does bulk copies: runs of bytes and tiles, to shared memory and from there.

It works on one load after another, and beside them on one store or reduction after another, at a number of bytes a
cycle, and a number of requests to L2 a cycle of loads: rows of 32 or 64 bytes take it as long as whole lines would at
that rate, and rows that begin in the midst of a sector up to four times as long (tests/records/h200_tma_rows.json).
The unit holds a few stores; while it does, no other can issue.

What comes from L2 and DRAM takes of the SM's share of their bandwidth (`share`), as ordinary loads do. A load waits
where that was used up before it, but is not stretched over all of it: SMs that wait for their loads come one after
another, as customers of a server with one queue do who come back a fixed time after they were served. An SM that
computes between its loads has not used up its share: on an H200 rings of one stage wait for 326 cycles a tile of 24 KiB
where a block computes for 850 to 2,100 cycles in between, and for 684 where it only loads
(tests/records/h200_tma_load.json). The slowest line of a load is what counts.

What SMs of a GPC ask for at about the same time, L2 reads but once (`memory.caches.merging`). SMs that wait for each
load drift apart: each has its own distance to L2. The longer loads are under way when the next one begins, the more of
them come together again.
"""

from __future__ import annotations

from math import ceil

from gemmsim.sm.spec import Spec
from gemmsim.sm.units import dram
from gemmsim.sm.units.events import ACCESSED, FILLED, TMA, tell
from gemmsim.sm.units.execution import Sync
from gemmsim.sm.units.gates import count_for
from gemmsim.sm.units.instruction import Bulk, Instruction
from gemmsim.sm.units.machine import MemoryPath, Sm, SubPartition, Warp
from gemmsim.sm.units.pipes import block_until
from gemmsim.sm.units.server import book
from gemmsim.sm.units.share import slice_cycles, take
from gemmsim.sm.units.slowest_line import slowest_of

LOADS_REMEMBERED = 8  # for fences (`MemoryPath.tile_ends`)
_GROUP, _LOAD, _REDUCTION = int(Bulk["GROUP"]), int(Bulk["LOAD"]), int(Bulk["REDUCTION"])


def copy_in_bulk(sm: Sm, part: SubPartition, warp: Warp, row: Instruction, now: int) -> None:
    """Begin a bulk copy that issues in cycle `now`, or close a group of them: set `done` and `sources_read` of the
    warp."""
    warp.sources_read = now + sm.spec.other_sources_read_cycles
    warp.done = now + row.latency_cycles
    if row.bulk == _GROUP:  # its scoreboard is free when all stores so far have read shared memory
        warp.sources_read = max(warp.sources_read, warp.bulk_read)
        return
    syncs, first = sm.streams[warp.stream].syncs, True
    for _ in range(syncs[warp.syncs].more + 1):
        sync = syncs[warp.syncs]
        warp.syncs += 1
        if row.bulk == _LOAD:
            end = load_tile(sm, sm.memory, sync, now) + map_cycles(sm, warp, sync, now)
            count_for(sm, warp.block, sync, end)
            tell(sm, ACCESSED, now, ceil(end), warp.slot, warp.pc, TMA)
            tell(sm, FILLED, now, ceil(end), warp.slot, warp.pc, sync.gate)
        elif first and sync.amount > 0:
            read = _store(sm, part, sync, row, now) + map_cycles(sm, warp, sync, now)
            warp.bulk_read = max(warp.bulk_read, read)
            tell(sm, ACCESSED, now, read, warp.slot, warp.pc, TMA)
        first = False


def map_cycles(sm: Sm, warp: Warp, sync: Sync, now: int) -> int:
    """Return for how many cycles a copy waits for the tensor map that it uses.

    The SM keeps the maps that it has fetched. One that a block has made and dropped from the cache comes from L2.
    """
    if sync.tensor_map == 0:
        return 0
    maps, cycles = sm.memory.maps, sm.spec.map_cycles
    if sm.makes_maps:
        maps, cycles = sm.blocks[warp.block].maps, sm.spec.own_map_cycles
    number = sync.tensor_map - 1
    if maps[number] == 0:
        maps[number] = now + cycles
    return max(maps[number] - now, 0)


def load_tile(sm: Sm, memory: MemoryPath, sync: Sync, now: int) -> float:
    """Begin a load, of a tile or a run of bytes. Return the cycle in which its last byte is in shared memory, and its
    mbarrier knows.
    """
    spec, lines = sm.spec, sync.lines
    cycles = max(sync.amount * spec.tma_load_byte_cycles, sync.requests * spec.tma_load_request_cycles)
    begin = book(memory.tma_loads, now, float(now), cycles)
    starts, latency = begin, spec.tma_load_cycles
    if sync.dram_sectors > 0 or sync.dram_shared > 0:
        latency += dram.latency_beyond_l2(spec, 0, slowest_of(spec, memory, lines))
    if sync.dram_sectors > 0:
        latency += dram.queue_cycles(
            spec.dram_queue_cycles, memory.dram_share.asked, lines, spec.dram_latency_cycles, now
        )
        latency += dram.mixed_cycles(spec, memory, now)
        starts = max(starts, dram.read(spec, memory, sync.dram_sectors, now))
    if sync.l2_sectors > 0:
        least = sync.requests * spec.tma_least_sectors  # a request for fewer takes L2 as long
        asked = max(float(sync.l2_sectors), least) - sync.merged_sectors * _together(spec, memory, sync, now)
        latency += dram.queue_cycles(spec.tma_queue_cycles, memory.l2_share.asked, lines, spec.l2_latency_cycles, now)
        share = asked * spec.tma_sector_l2_cycles
        starts = max(starts, take(memory.l2_share, now, share, spec.loads_in_step) - share)
        slices = slice_cycles(spec, asked - sync.dram_sectors, sync.dram_sectors)
        starts = max(starts, take(memory.slice_share, now, slices, spec.loads_in_step) - slices)
    end = starts + cycles + latency
    memory.load_latency = end - now
    memory.load_end = max(memory.load_end, end)
    memory.tile_ends[memory.oldest_tile] = end
    memory.oldest_tile = (memory.oldest_tile + 1) % LOADS_REMEMBERED
    memory.unacknowledged = 1
    return end


def _together(spec: Spec, memory: MemoryPath, sync: Sync, now: int) -> float:
    """Return the share of what could merge with other SMs' requests that does: all where loads of earlier phases are
    under way for as long as this one will be, `Spec.tma_merged_alone` where none is.
    """
    if sync.gate != memory.load_gate:
        memory.load_gate = sync.gate
        memory.earlier_end = memory.load_end
    ahead = min(max(memory.earlier_end - now, 0.0) / max(memory.load_latency, 1.0), 1.0)
    return spec.tma_merged_alone + (1.0 - spec.tma_merged_alone) * ahead * ahead


def _store(sm: Sm, part: SubPartition, sync: Sync, row: Instruction, now: int) -> int:
    """Return the cycle in which the last byte of a store has been read from shared memory."""
    spec, memory = sm.spec, sm.memory
    a_byte = spec.tma_reduction_byte_cycles if row.bulk == _REDUCTION else spec.tma_store_byte_cycles
    cycles, share = sync.amount * a_byte, sync.l2_sectors * spec.stored_sector_l2_cycles
    begin = book(memory.tma_stores, now, float(now), max(cycles, share))
    book(memory.l2_stores, now, begin, share)
    take(memory.slice_share, now, share, spec.loads_in_step)
    dram.write(spec, memory, sync.dram_sectors, now)
    memory.stores_begun[memory.oldest_store] = begin
    memory.oldest_store = (memory.oldest_store + 1) % spec.tma_stores_held
    held = memory.stores_begun[memory.oldest_store]
    if held > now:
        for p in range(spec.sub_partitions):
            block_until(sm.sub_partitions[p].pipes.ports[row.port], now, ceil(held))
    return ceil(begin + max(cycles, share) + spec.tma_store_cycles)
