"""The way of a memory instruction: address unit, shared queue, L1's stages, and this SM's shares of L2 and DRAM.

Latencies of a GPU are load-to-use, measured on an idle SM; whatever makes a request wait, or take longer than the
measured one, is added to them.
"""

from __future__ import annotations

from math import ceil, floor

from gemmsim.sm.spec import Spec
from gemmsim.sm.units import dram
from gemmsim.sm.units.data_stage import behind_returns, pass_data_stage
from gemmsim.sm.units.execution import AccessCost
from gemmsim.sm.units.fills import place_for
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.machine import MemoryPath, Sm, SubPartition, Warp
from gemmsim.sm.units.request_queue import enter, first_in_queue, leave, left_before
from gemmsim.sm.units.server import book
from gemmsim.sm.units.share import slice_cycles, take
from gemmsim.sm.units.slowest_line import slowest_of


def request(sm: Sm, part: SubPartition, warp: Warp, row: Instruction, cost: AccessCost, now: int) -> None:
    """Send a memory instruction that issues in cycle `now` to L1 and beyond, and set when it will be done: `release`,
    `sources_read` and `done` of the warp.

    `Block.arriving` of the warp's block says when the data of each fetch is in L1. A load whose fetch another one has
    asked L2 for finds the data there, and waits until then.

    Loads to registers that go through the tags wait for these, or for the data stage, in a queue of their own, and let
    requests to shared memory pass (tests/records/h200_load_bursts.json, h200_queues.json).

    A warp gets a wavefront of what it finds in L1 or shared memory every `Spec.wavefront_latency_cycles`, though the SM
    serves more, and a sub-partition one of what comes from L2. Loads of one wavefront are not booked, as the address
    unit takes at least as long for each. Loads that have waited for what another one asked for follow it as fast as the
    SM serves them (tests/records/h200_miss_rates.json).
    """
    spec, memory = sm.spec, sm.memory
    arriving = sm.blocks[warp.block].arriving
    there = arriving[cost.fetch] if cost.fetch > 0 else 0
    l2_sectors = 0 if there > 0 else cost.l2_sectors
    loads = row.writes_registers > 0 or row.copies > 0
    # A generic access without work for the tag stage has gone to shared memory.
    in_shared = row.generic > 0 and cost.tag_cycles == 0 and cost.wavefronts > 0
    shared_load = row.shared_load > 0 or (in_shared and loads)
    address_cycles = spec.shared_address_cycles if shared_load else spec.address_cycles
    idle_arrival = now + spec.issue_to_address_cycles + address_cycles
    addressed = enter(spec, memory, part, address_cycles, now)
    apart = row.writes_registers > 0 and cost.tag_cycles > 0 and cost.wavefronts > 0 and spec.load_entries > 0
    first = first_in_queue(spec, memory, addressed, apart)
    begin = first  # when the request begins at the latest stage that it has reached
    if cost.tag_cycles > 0:
        begin = book(memory.tags, now, begin, float(cost.tag_cycles))
    if l2_sectors > 0:
        memory.unacknowledged = 1
    data_cycles = cost.wavefronts * spec.wavefront_cycles
    # What a load to registers misses takes the data stage when it comes.
    later = l2_sectors > 0 and row.writes_registers > 0 and cost.wavefronts > 0
    held = _held(spec, memory, row, cost, l2_sectors) if cost.wavefronts > 0 else 0.0
    if held > 0 and row.past_l1 > 0:
        begin = book(memory.data, now, begin, held)  # it reads nothing from the banks
    elif held > 0 and not later:
        held += behind_returns(spec, memory, row, cost, begin)
        begin = pass_data_stage(sm, begin, held, now)
    if row.copies > 0 and memory.banks.next_free > now:
        memory.copied_cycles += l2_sectors * spec.sector_fill_cycles
    end = begin + max(data_cycles, float(cost.tag_cycles))
    leaves = first if later or apart else begin
    out_cycles = 0.0
    if l2_sectors > 0 and (not loads or cost.atomic_ps > 0):
        out_cycles = l2_sectors * spec.sector_out_cycles + cost.partial_lines * spec.partial_line_cycles
        out_cycles = max(out_cycles, cost.atomic_ps * spec.atomic_cycles_per_ps)
        leaves = book(memory.out, now, begin, out_cycles)
    handed_over = leave(spec, memory, addressed, leaves, begin, apart)
    part.address_free = handed_over
    warp.release = ceil(max(handed_over, begin) if later and not apart else handed_over)
    read_cycles = row.shared_sources_cycles if in_shared else float(row.sources_read_cycles)
    warp.sources_read = ceil(now + read_cycles + addressed - idle_arrival + max(leaves - begin, 0.0))
    if row.copies > 0:
        ahead = left_before(spec, memory, spec.copy_reads_behind)
        warp.sources_read = max(warp.sources_read, ceil(now + read_cycles + max(ahead - idle_arrival, 0.0)))
    if not loads:
        if out_cycles > 0:
            end = max(_write_behind(spec, memory, cost, max(end, leaves), now), leaves + out_cycles)
        warp.done = ceil(end)
        return
    returns = row.writes_registers > 0 and cost.wavefronts > 1
    return_cycles = cost.wavefronts * spec.wavefront_latency_cycles
    if returns and l2_sectors == 0 and there <= now:
        begin = max(begin, warp.returned)
        warp.returned = begin + return_cycles
    if in_shared:
        latency = _generic_latency(spec, row, cost)
    else:
        latency = _hit_latency(spec, row, cost) if l2_sectors == 0 else _passing_latency(spec, row, cost)
    if l2_sectors > 0:
        latency += _miss_cycles(spec, memory, row, cost, warp, end, now)
        if cost.atomic_ps > 0:
            latency += max(leaves - begin, 0.0)
    done = now + latency + (begin - idle_arrival)
    from_stage = _passing_latency(spec, row, cost) - (idle_arrival - now)
    at = done - from_stage
    if returns and later:
        at = book(part.returns, now, at, return_cycles)
        done = at + from_stage
    elif returns and there > now:  # it is answered behind those that have waited for the same
        at = max(there - from_stage, begin)
        done = book(part.returns, now, at, cost.wavefronts * spec.wavefront_cycles) + from_stage
    warp.done = ceil(done)
    if later:
        _await(memory, warp, row, at, held, from_stage - held)
    if there > 0:
        warp.done = max(warp.done, there)
    elif cost.fetch > 0:
        arriving[cost.fetch] = warp.done


def _await(memory: MemoryPath, warp: Warp, row: Instruction, at: float, held: float, until_use: float) -> None:
    """Note what the load `row` of the warp waits for: it is at the data stage at `at`, takes it for `held` cycles, and
    can be used so long after. See `Fill`.
    """
    fill = memory.fills.rows[place_for(memory.fills, at)]
    fill.at = at
    fill.cycles = held
    fill.until_use = until_use
    fill.expected = warp.done
    fill.warp = warp.slot
    fill.rank = warp.rank
    fill.scoreboard = row.write_scoreboard
    fill.reason = row.result_reason


def _held(spec: Spec, memory: MemoryPath, row: Instruction, cost: AccessCost, l2_sectors: int) -> float:
    """Return for how many cycles a request takes the data stage, with what a load to registers brings from L2.

    On an H200 a request to global memory takes the data stage longer where one to shared memory came shortly before. A
    copy to shared memory (LDGSTS) writes as many bytes a cycle as the banks are wide, which counts as one wavefront:
    of 16 bytes a lane, it takes 4.3 to 4.5 cycles beside matrix loads where it goes past L1, 8.1 to 8.4 through it
    (own microbenchmark, tests/records/h200_copies.json). The wavefronts of one that reads nothing are those in which it
    writes zeros.
    """
    held = max(cost.wavefronts * spec.wavefront_cycles, spec.request_cycles)
    if row.copies > 0:
        reads = cost.tag_cycles > 0 or cost.l2_sectors > 0
        held = held + row.copy_cycles if reads else max(held, spec.zeros_cycles)
    if row.writes_registers > 0:
        held += l2_sectors * spec.sector_fill_cycles + (row.fill_cycles if l2_sectors > 0 else 0.0)
    if cost.tag_cycles == 0:
        memory.after_shared = 0
    elif memory.after_shared < spec.tagged_after_shared_requests:
        held += spec.tagged_request_cycles
        memory.after_shared += 1
    memory.unflushed = max(memory.unflushed, 0)
    if row.writes_registers == 0 and row.copies == 0:
        memory.unflushed += cost.wavefronts
    return held


def _hit_latency(spec: Spec, row: Instruction, cost: AccessCost) -> float:
    """Return the load-to-use cycles of a hit on an idle SM. More wavefronts and passes of the tag stage add to them: on
    an H200 8 wavefronts in two passes 15 cycles, 32 in eight 69 (tests/records/h200_miss_rates.json)."""
    if row.shared_load:
        return _shared_latency(spec, cost, row.lane_groups, row.hit_latency_cycles, row.narrow_latency_cycles)
    longer = max(cost.wavefronts - row.lane_groups, 0) * spec.wavefront_latency_cycles
    return row.hit_latency_cycles + longer + max(cost.tag_cycles - 1.0, 0.0)


def _passing_latency(spec: Spec, row: Instruction, cost: AccessCost) -> float:
    """Return how many of the load-to-use cycles of a load that misses pass within the SM: what comes from L2 line by
    line is passed on as it comes."""
    longer = max((cost.wavefronts - row.lane_groups) * spec.wavefront_cycles, cost.tag_cycles - 1.0)
    return row.hit_latency_cycles + longer if longer > 0 else row.hit_latency_cycles


def _shared_latency(spec: Spec, cost: AccessCost, lane_groups: int, hit_cycles: float, narrow_cycles: float) -> float:
    """Return the load-to-use cycles of a load from shared memory on an idle SM: what it takes by itself, however many
    wavefronts a cycle all warps together get.

    hit_cycles, narrow_cycles  of a conflict-free load of its width, and of a 32-bit one
    """
    groups = min(cost.wavefronts, lane_groups)
    more = (cost.wavefronts - 1) * spec.wavefront_latency_cycles + (groups - 1) * spec.group_latency_cycles
    return max(hit_cycles, narrow_cycles + more)


def _generic_latency(spec: Spec, row: Instruction, cost: AccessCost) -> float:
    """Return the same of a generic load from shared memory, the block's own or another one's of its cluster."""
    if cost.remote > 0:
        return _shared_latency(spec, cost, row.lane_groups, spec.remote_load_cycles, spec.remote_load_cycles)
    return _shared_latency(spec, cost, row.lane_groups, row.shared_latency_cycles, row.shared_narrow_cycles)


def _latency_of_misses(
    spec: Spec, memory: MemoryPath, row: Instruction, cost: AccessCost, warp: Warp, now: int
) -> float:
    """Return how long a load waits for the slowest of its lines, from L2 or, where it or another SM has asked DRAM for
    them, from there.

    Blocks that share tiles keep in step where each has an SM, or a part of it, for itself: all of them wait for DRAM.
    Where they compete for an SM, they compute one after another, so that on the SMs that share a tile now one block is
    the first to ask for it and now another, and the others come later by as long as those before them have computed.
    What they ask for is that far on its way, or in L2 already (own microbenchmark on an H200: blocks that share
    sub-partitions in tests/records/h200_block_tiles.json). Here the blocks of an SM are first in turn, and how long one
    computes is what passed since the warp's data came, shared out among them. Asynchronous copies were not measured:
    all of them wait.
    """
    slowest = slowest_of(spec, memory, cost.runs)
    latency = spec.l2_latency_cycles + spec.l2_deviation_cycles * slowest
    if cost.dram_sectors == 0 and cost.dram_shared == 0:
        return latency
    if now > warp.loaded:
        warp.worked = now - warp.loaded
    later = dram.latency_beyond_l2(spec, cost.dram_shared, slowest)
    if cost.dram_sectors == 0 and row.copies == 0:
        place = (cost.execution + warp.block) % memory.companions
        later = max(0.0, later - place * warp.worked / memory.companions)
    warp.loaded = max(warp.loaded, now + ceil(latency + later))
    return latency + later


def _miss_cycles(
    spec: Spec, memory: MemoryPath, row: Instruction, cost: AccessCost, warp: Warp, sent: float, now: int
) -> float:
    """Return the cycles that a load's misses add to a hit. The measured latencies are those of one sector.

    What is on its way from DRAM for another SM comes no sooner than from DRAM, but takes nothing of this SM's share.
    Sectors that come with another SM's request take the SM's link to L2, but nothing of its share of what L2 reads.
    """
    arrival, dram_sectors = sent, cost.dram_sectors
    latency = _latency_of_misses(spec, memory, row, cost, warp, now)
    if dram_sectors > 0:
        arrival += dram.queue_cycles(spec.dram_queue_cycles, memory.dram_share.asked, 1, spec.dram_latency_cycles, now)
        arrival += dram.mixed_cycles(spec, memory, now)
        arrival = max(arrival, dram.load(spec, memory, dram_sectors, now))
    cycles = cost.l2_sectors * spec.sector_link_cycles
    if row.copies == 0:
        cycles = max(cycles, spec.miss_interval_cycles)
    begin = book(memory.link, now, arrival, cycles)
    share = (cost.l2_sectors - cost.merged_sectors) * spec.sector_l2_cycles
    least = cost.lines * spec.line_l2_cycles  # a line takes L2 so long, however few of its sectors are asked for
    share = max(share, least * (cost.l2_sectors - cost.merged_sectors) / cost.l2_sectors)
    end = max(begin + cycles, take(memory.l2_share, now, share, spec.loads_in_step))
    slices = slice_cycles(spec, float(cost.l2_sectors - cost.merged_sectors - dram_sectors), dram_sectors)
    end = max(end, take(memory.slice_share, now, slices, spec.loads_in_step))
    return latency - row.hit_latency_cycles + end - sent - min(cycles, spec.sector_link_cycles)


def _write_behind(spec: Spec, memory: MemoryPath, cost: AccessCost, sent: float, now: int) -> float:
    """Return the cycle at which a store's sectors have passed the SM's share of L2. The write to DRAM takes bandwidth,
    but nothing waits for it.

    Stores pass one after another, as SMs that compute alike write their results at the same time.
    """
    cycles = cost.l2_sectors * spec.stored_sector_l2_cycles + cost.partial_lines * spec.partial_line_l2_cycles
    end = book(memory.l2_stores, now, sent, cycles) + cycles
    end = max(end, take(memory.slice_share, now, cycles, spec.loads_in_step))
    dram.write(spec, memory, cost.dram_sectors, now)
    return end


def flush(sm: Sm, now: float) -> None:
    """Book a flush of the data stage, for the accesses before a barrier that opens in cycle `now`; nobody waits for it.

    Barriers of several blocks that open at about the same time share a flush. Where nothing was accessed since the last
    flush, there is none.
    """
    spec, memory = sm.spec, sm.memory
    if memory.unflushed < 0 or now < memory.flushed + spec.flush_interval_cycles:
        return
    stores = min(memory.unflushed * spec.flush_store_cycles, spec.flush_most_store_cycles)
    memory.flushed = now
    memory.unflushed = -1
    pass_data_stage(sm, now, spec.flush_cycles + stores, floor(now))
