"""The TMA unit of an SM, which does bulk copies: runs of bytes and tiles, to shared memory and from there.

It works on one load after another, and beside them on one store or reduction after another, at a number of bytes a
cycle. What comes from L2 and DRAM takes their share of bandwidth as well. The unit holds a few stores; while it does,
no other can issue.
"""

from __future__ import annotations

from math import ceil

from gemmsim.sm.units.events import ACCESSED, FILLED, TMA, tell
from gemmsim.sm.units.gates import count_for
from gemmsim.sm.units.instruction import Bulk, Instruction, Sync
from gemmsim.sm.units.machine import MemoryPath, Sm, SubPartition, Warp
from gemmsim.sm.units.memory_path import queue_cycles, read_dram, write_dram
from gemmsim.sm.units.pipes import block_until
from gemmsim.sm.units.server import book

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
            end = _load(sm, sm.memory, sync, now)
            count_for(sm, warp.block, sync, end)
            tell(sm, ACCESSED, now, ceil(end), warp.slot, warp.pc, TMA)
            tell(sm, FILLED, now, ceil(end), warp.slot, warp.pc, sync.gate)
        elif first and sync.amount > 0:
            read = _store(sm, part, sync, row, now)
            warp.bulk_read = max(warp.bulk_read, read)
            tell(sm, ACCESSED, now, read, warp.slot, warp.pc, TMA)
        first = False


def _load(sm: Sm, memory: MemoryPath, sync: Sync, now: int) -> float:
    """Return the cycle in which the last byte of a load is in shared memory, and its mbarrier knows."""
    spec, cycles = sm.spec, sync.amount * sm.spec.tma_load_byte_cycles
    begin = book(memory.tma_loads, now, float(now), cycles)
    end = begin + cycles
    latency = spec.tma_load_cycles
    if sync.dram_sectors > 0:
        latency += spec.dram_latency_cycles - spec.l2_latency_cycles + queue_cycles(spec, memory, now)
        reads = read_dram(spec, memory, begin, sync.dram_sectors, now)
        end = max(end, reads + sync.dram_sectors * spec.sector_dram_cycles)
    if sync.l2_sectors > 0:
        share = sync.l2_sectors * spec.sector_l2_cycles
        end = max(end, book(memory.l2, now, begin, share) + share)
    return end + latency


def _store(sm: Sm, part: SubPartition, sync: Sync, row: Instruction, now: int) -> int:
    """Return the cycle in which the last byte of a store has been read from shared memory."""
    spec, memory = sm.spec, sm.memory
    a_byte = spec.tma_reduction_byte_cycles if row.bulk == _REDUCTION else spec.tma_store_byte_cycles
    cycles, share = sync.amount * a_byte, sync.l2_sectors * spec.stored_sector_l2_cycles
    begin = book(memory.tma_stores, now, float(now), max(cycles, share))
    book(memory.l2, now, begin, share)
    write_dram(spec, memory, begin, sync.dram_sectors, now)
    memory.stores_begun[memory.oldest_store] = begin
    memory.oldest_store = (memory.oldest_store + 1) % spec.tma_stores_held
    held = memory.stores_begun[memory.oldest_store]
    if held > now:
        for p in range(spec.sub_partitions):
            block_until(sm.sub_partitions[p].pipes.ports[row.port], now, ceil(held))
    return ceil(begin + max(cycles, share) + spec.tma_store_cycles)
