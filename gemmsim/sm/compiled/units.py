"""The units of the SM: pipes and ports, register ports, servers, the memory path, instruction fetch.

Comments that say why are in the SimPy model, which each docstring names.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from gemmsim.native.numba_parts import DOUBLE, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.sm.code import Reason
from gemmsim.sm.compiled.layout import DATA, DRAM, ENTRANCE, L2, OUT, TAGS
from gemmsim.sm.compiled.memory import add_real, integer, put_integer, put_real, real
from gemmsim.sm.compiled.records import (
    BLOCK_TYPE,
    COST_TYPE,
    PART_TYPE,
    ROW_TYPE,
    SERVER_TYPE,
    SM_TYPE,
    WARP_TYPE,
    pipe_at,
    port_at,
    server_at,
)
from gemmsim.sm.memory_path import BESIDE_SHARED, FLUSH_SHARED_CYCLES
from gemmsim.sm.registers import PAIR, TWO_PASSES

# mypy: disable-error-code="no-untyped-def"

_NO_INSTRUCTION = int(Reason["NO_INSTRUCTION"])


@subroutine(INDEX, DOUBLE)
def up(cycles):
    return np.int64(ceil(cycles))


@subroutine(NOTHING, PART_TYPE, INDEX, INDEX, INDEX)
def block_port(part, port, cycle, now):
    """`Port._block_until`."""
    if cycle > now + 1:
        put_integer(part.port_blocked_at, port, integer(part.port_blocked_at, port) + cycle - (now + 1))
        put_integer(part.port_free_at, port, cycle)


@subroutine(NOTHING, SM_TYPE, PART_TYPE, ROW_TYPE, INDEX)
def take_pipe(sm, part, row, now):
    """`Port.take`."""
    port = port_at(sm.ports_at, row.port)
    for i in range(port.pipes):
        number = port.first if i == 0 else port.second
        free = real(part.pipe_free_at, number)
        if free > now:
            continue
        pipe = pipe_at(sm.pipes_at, number)
        add_real(part.pipe_issued_at, number, row.slots)
        cycles = pipe.interval * row.slots
        put_real(part.pipe_free_at, number, (free if free > now - 1 else float(now)) + cycles)
        if cycles > 1:
            for other in range(sm.ports):
                user = port_at(sm.ports_at, other)
                if user.pipes > 0 and (user.first == number or user.second == number):
                    earliest = real(part.pipe_free_at, user.first)
                    if user.pipes > 1:
                        earliest = min(earliest, real(part.pipe_free_at, user.second))
                    block_port(part, other, up(earliest), now)
        return


@subroutine(NOTHING, SM_TYPE, PART_TYPE, INDEX, INDEX)
def hold_queue(sm, part, release, now):
    """`Queue.hold`; port 0 is the memory queue's."""
    room = sm.queue_entries + 1
    while part.queue_length > 0 and integer(part.queue_at, part.queue_head) <= now:
        part.queue_head = (part.queue_head + 1) % room
        part.queue_length -= 1
    put_integer(part.queue_at, (part.queue_head + part.queue_length) % room, release)
    part.queue_length += 1
    if part.queue_length == sm.queue_entries:
        block_port(part, 0, integer(part.queue_at, part.queue_head), now)


@subroutine(NOTHING, PART_TYPE, ROW_TYPE, INDEX, INDEX)
def read_registers(part, row, rank, now):
    """`RegisterPorts.read`."""
    even, odd, uniform = 0, 0, row.uniform
    for slot in range(3):
        register = row.first if slot == 0 else row.second if slot == 1 else row.third
        if register < 0:
            continue
        place = 2 * (2 * slot + register % 2)
        cycles = 2 if row.wide == TWO_PASSES and slot != 1 else 1
        other = 1 if row.wide == PAIR else 0
        again = slot > 0 and (register == row.first or (slot > 1 and register == row.second))
        if again or (integer(part.kept_at, place) == rank and integer(part.kept_at, place + 1) == register):
            cycles = 0
            other = 0
        put_integer(part.kept_at, place, rank if row.reuse >> slot & 1 else 0)
        put_integer(part.kept_at, place + 1, register)
        if row.wide == TWO_PASSES and slot == 2:
            other = 1
        even += other if register % 2 else cycles
        odd += cycles if register % 2 else other
    end = 0
    if even:
        part.even_free = max(part.even_free, now) + even
        end = part.even_free
    if odd:
        part.odd_free = max(part.odd_free, now) + odd
        end = max(end, part.odd_free)
    if uniform:
        part.uniform_free = max(part.uniform_free, now) + uniform
        end = max(end, part.uniform_free + row.window - row.uniform_window)
    late = end - row.window - now
    if late > 0:
        part.blocked_cycles += late
        part.next_free = now + 1 + late


@subroutine(TRUTH, SM_TYPE, SERVER_TYPE)
def room_behind(sm, server):
    """Whether one more gap finds room behind the last; the list is moved to the front where that is needed."""
    if server.head + server.gaps < sm.room:
        return True
    if server.head == 0:
        sm.full = 1
        return False
    for i in range(2 * server.gaps):
        put_real(server.gaps_at, i, real(server.gaps_at, 2 * server.head + i))
    server.head = 0
    return True


@subroutine(NOTHING, SERVER_TYPE, INDEX, INDEX, INDEX)
def move_gaps(server, first, last, by):
    """Move gaps [first, last) by `by` (1 or -1) places."""
    if by > 0:
        for i in range(2 * last - 1, 2 * first - 1, -1):
            put_real(server.gaps_at, i + 2, real(server.gaps_at, i))
    else:
        for i in range(2 * first, 2 * last):
            put_real(server.gaps_at, i - 2, real(server.gaps_at, i))
    server.gaps += by


@subroutine(DOUBLE, SM_TYPE, INDEX, INDEX, DOUBLE, DOUBLE)
def book(sm, which, now, arrival, cycles):
    """`Server.book`."""
    server = server_at(sm.servers_at, which)
    server.busy += cycles
    while server.gaps > 0 and real(server.gaps_at, 2 * server.head + 1) <= now:
        server.head += 1
        server.gaps -= 1
    for n in range(server.gaps):
        gap = server.head + n
        start, end = real(server.gaps_at, 2 * gap), real(server.gaps_at, 2 * gap + 1)
        begin = max(start, arrival)
        if begin + cycles > end:
            continue
        left, right = start < begin, begin + cycles < end
        if left and right:
            if not room_behind(sm, server):
                return begin
            gap = server.head + n
            move_gaps(server, gap + 1, server.head + server.gaps, 1)
            put_real(server.gaps_at, 2 * gap + 1, begin)
            put_real(server.gaps_at, 2 * gap + 2, begin + cycles)
            put_real(server.gaps_at, 2 * gap + 3, end)
        elif left:
            put_real(server.gaps_at, 2 * gap + 1, begin)
        elif right:
            put_real(server.gaps_at, 2 * gap, begin + cycles)
        else:
            move_gaps(server, gap + 1, server.head + server.gaps, -1)
        return begin
    begin = server.next_free
    if arrival > begin:
        if room_behind(sm, server):
            last = server.head + server.gaps
            put_real(server.gaps_at, 2 * last, begin)
            put_real(server.gaps_at, 2 * last + 1, arrival)
            server.gaps += 1
        begin = arrival
    server.next_free = begin + cycles
    return begin


@subroutine(DOUBLE, SM_TYPE, INDEX, INDEX, INDEX, DOUBLE, DOUBLE, INDEX)
def miss_cycles(sm, l2_sectors, dram_sectors, in_flight, sent, hit_latency, now):
    """`MemoryPath._miss`."""
    waited, arrival = 0.0, sent
    latency = sm.dram_latency if dram_sectors > 0 or in_flight > 0 else sm.l2_latency
    if dram_sectors > 0:
        cycles = dram_sectors * sm.sector_dram_cycles
        begin = book(sm, DRAM, now, arrival, cycles)
        waited = begin - arrival + cycles - sm.sector_dram_cycles
        arrival += waited
    cycles = l2_sectors * sm.sector_l2_cycles
    begin = book(sm, L2, now, arrival, cycles)
    waited += begin - arrival + cycles - sm.sector_l2_cycles
    return latency - hit_latency + waited


@subroutine(NOTHING, SM_TYPE, PART_TYPE, WARP_TYPE, BLOCK_TYPE, ROW_TYPE, COST_TYPE, INDEX)
def request(sm, part, warp, block, row, cost, now):
    """`MemoryPath.request`: fills `release`, `read_done` and `done` of the warp."""
    there = integer(block.arriving_at, cost.fetch) if cost.fetch > 0 else 0
    l2_sectors, dram_sectors, in_flight = cost.l2_sectors, cost.dram_sectors, cost.in_flight
    if there > 0:
        l2_sectors = 0
        dram_sectors = 0
        in_flight = 0
    address_cycles = sm.shared_address_cycles if row.shared_load else sm.address_cycles
    addressed = max(part.address_free, now + sm.issue_to_address) + address_cycles
    idle_arrival = now + sm.issue_to_address + address_cycles
    if sm.shared_entries > 0:
        addressed = max(addressed, real(sm.shared_queue_at, sm.shared_head))
        addressed = book(sm, ENTRANCE, now, addressed, sm.request_cycles)
    data_cycles = cost.wavefronts * sm.cycles_per_wavefront
    begin = addressed
    if cost.tag_cycles > 0:
        begin = book(sm, TAGS, now, begin, float(cost.tag_cycles))
    if cost.wavefronts > 0:
        held = max(data_cycles, sm.request_cycles)
        if row.load or row.copy:
            held += l2_sectors * sm.sector_fill_cycles
        if cost.tag_cycles == 0:
            sm.since_shared = 0
        elif sm.since_shared < BESIDE_SHARED:
            held += sm.tagged_cycles
            sm.since_shared += 1
        begin = book(sm, DATA, now, begin, held)
        sm.unflushed = max(sm.unflushed, 0)
        if not row.load and not row.copy:
            sm.unflushed += cost.wavefronts
    end = begin + max(data_cycles, float(cost.tag_cycles))
    leaves = begin
    out_cycles = 0.0
    if l2_sectors > 0 and not row.load and not row.copy:
        out_cycles = l2_sectors * sm.sector_out_cycles + cost.partial_lines * sm.partial_line_cycles
        leaves = book(sm, OUT, now, begin, out_cycles)
    handed_over = leaves
    if sm.shared_entries > 0:
        put_real(sm.shared_queue_at, sm.shared_head, leaves)
        sm.shared_head = (sm.shared_head + 1) % sm.shared_entries
        handed_over = addressed
    part.address_free = handed_over
    warp.release = up(handed_over)
    warp.read_done = up(now + row.sources_read + addressed - idle_arrival + leaves - begin)
    waited = begin - idle_arrival
    if not row.load and not row.copy:
        if out_cycles > 0:
            cycles = l2_sectors * sm.sector_l2_cycles
            end = book(sm, L2, now, max(end, leaves), cycles) + cycles
            if dram_sectors > 0:
                book(sm, DRAM, now, end, dram_sectors * sm.sector_dram_cycles)
            end = max(end, leaves + out_cycles)
        warp.done = up(end)
        return
    longer = (cost.wavefronts - row.base_wavefronts) * sm.cycles_per_wavefront
    if row.shared_load:
        longer = row.narrow_latency + (cost.wavefronts - 1) * sm.wavefront_latency - row.access_latency
    longer = max(longer, cost.tag_cycles - 1.0)
    latency = row.access_latency
    if longer > 0:
        latency += longer
    if l2_sectors > 0:
        latency += miss_cycles(sm, l2_sectors, dram_sectors, in_flight, end, row.access_latency, now)
    warp.done = up(now + latency + waited)
    if there > 0:
        warp.done = max(warp.done, there)
    elif cost.fetch > 0:
        put_integer(block.arriving_at, cost.fetch, warp.done)


@subroutine(NOTHING, SM_TYPE, DOUBLE)
def flush(sm, now):
    """`MemoryPath.flush`."""
    if sm.unflushed < 0 or now < sm.flushed + FLUSH_SHARED_CYCLES:
        return
    stores = min(sm.unflushed * sm.flush_store_cycles, sm.flush_most_store_cycles)
    sm.flushed = now
    sm.unflushed = -1
    book(sm, DATA, np.int64(now), now, sm.flush_cycles + stores)


@subroutine(NOTHING, INDEX, INDEX)
def forget_oldest(stamps_at, lines):
    oldest = -1
    for line in range(lines):
        stamp = integer(stamps_at, line)
        if stamp > 0 and (oldest < 0 or stamp < integer(stamps_at, oldest)):
            oldest = line
    put_integer(stamps_at, oldest, 0)


@subroutine(DOUBLE, SM_TYPE, INDEX, DOUBLE)
def load_line(sm, line, asked):
    """`InstructionCache._load`; a line's stamp says when it was used last, 0 that it is not there."""
    cycles = sm.near_cycles
    sm.stamp += 1
    absent = integer(sm.second_stamp_at, line) == 0
    put_integer(sm.second_stamp_at, line, sm.stamp)
    if absent:
        cycles = sm.far_cycles
        sm.second_lines += 1
        if sm.second_lines > sm.most_second:
            forget_oldest(sm.second_stamp_at, sm.code_lines)
            sm.second_lines -= 1
    ready = max(sm.fetch_free, asked) + cycles
    sm.fetch_free = ready
    put_real(sm.first_ready_at, line, ready)
    put_integer(sm.first_stamp_at, line, sm.stamp)
    sm.first_lines += 1
    if sm.first_lines > sm.most_first:
        forget_oldest(sm.first_stamp_at, sm.code_lines)
        sm.first_lines -= 1
    return ready


@subroutine(NOTHING, SM_TYPE, WARP_TYPE, ROW_TYPE, INDEX, INDEX)
def fetch(sm, warp, row, line, now):
    """`SubPartition.fetch` and `InstructionCache.fetch`; `row` is the warp's next instruction."""
    warp.line = line
    if integer(sm.first_stamp_at, line) == 0:
        ready = load_line(sm, line, float(now))
    else:
        ready = real(sm.first_ready_at, line)
        sm.stamp += 1
        put_integer(sm.first_stamp_at, line, sm.stamp)
    if integer(sm.first_stamp_at, line + 1) == 0 and ready > now - sm.near_cycles:
        load_line(sm, line + 1, ready)
    there = up(ready)
    if there > warp.ready:
        add_real(row.stalls_at, _NO_INSTRUCTION, float(there - warp.ready))
        warp.ready = there
