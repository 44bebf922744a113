"""The way of a memory instruction: sub-partition queue, address unit, the SM's L1 stages, its shares of L2 and DRAM.

Latencies of a GPU are load-to-use, measured on an idle SM; whatever makes a request wait, or take longer than the
measured one, is added to them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil, floor
from typing import NamedTuple

from gemmsim.gpu.spec import GpuSpec
from gemmsim.sm.code import Access
from gemmsim.sm.servers import Server


class RecordCycles(NamedTuple):
    """What one executed memory instruction costs (see `memory.types.RecordCost`).

    fetch  number of what it asks L2 for, where it is the block's first access with that number; 0: always asks
    partial_lines  of a store: lines of which it writes sectors in part
    """

    wavefronts: int
    tag_cycles: int
    l2_sectors: int
    dram_sectors: int
    in_flight: int = 0
    fetch: int = 0
    partial_lines: int = 0


# On an H200 two blocks of one or two warps on different sub-partitions cause one flush (own microbenchmark).
FLUSH_SHARED_CYCLES = 3.0
# Requests that pass the tag stage are beside those that do not where so many of them follow one at most.
BESIDE_SHARED = 8

NO_RECORD = RecordCycles(0, 0, 0, 0)  # no lane was active: the instruction passes the queue and asks for nothing


@dataclass(frozen=True, slots=True)
class Rates:
    """This SM's share of what all SMs use, in bytes a SM cycle, and the latencies behind L1, in SM cycles."""

    l2_bytes_per_cycle: float
    dram_bytes_per_cycle: float
    l2_latency_cycles: float
    dram_latency_cycles: float

    @classmethod
    def share(cls, gpu: GpuSpec, active_sms: int, sm_clock_hz: float) -> Rates:
        """Equal shares for `active_sms` SMs; an SM's own link bounds what it can take from L2.

        Where L2 has two partitions, lines are taken to be spread evenly over the near and the far one.
        """
        l2, dram = gpu.l2, gpu.dram
        l2_latency = (l2.hit_latency_cycles + l2.far_latency_cycles) / 2 if l2.partitions > 1 else l2.hit_latency_cycles
        return cls(
            l2_bytes_per_cycle=min(gpu.l1.miss_bytes_per_cycle, l2.read_bytes_per_s / sm_clock_hz / active_sms),
            dram_bytes_per_cycle=dram.peak_bytes_per_s * dram.achievable_fraction / sm_clock_hz / active_sms,
            l2_latency_cycles=l2_latency,
            dram_latency_cycles=dram.latency_cycles,
        )


class MemoryPath:
    """LSU, L1 and the path to L2 and DRAM of one SM."""

    def __init__(self, gpu: GpuSpec, rates: Rates) -> None:
        self._rates = rates
        self._address_cycles = (gpu.pipes["lsu"].issue_interval_cycles, gpu.mio.shared_load_interval_cycles)
        self._issue_to_address = gpu.mio.issue_to_address_cycles
        self._in_shared_queue: deque[float] = deque([0.0] * gpu.mio.shared_entries)  # when the last ones left it
        self._address_free = [0.0] * gpu.sm.sub_partitions
        self._cycles_per_wavefront = 1 / gpu.shared.wavefronts_per_cycle
        self._wavefront_latency = gpu.shared.wavefront_latency_cycles
        self._request_cycles = gpu.shared.request_interval_cycles
        self._sector_l2_cycles = gpu.l1.sector_bytes / rates.l2_bytes_per_cycle
        self._sector_dram_cycles = gpu.l1.sector_bytes / rates.dram_bytes_per_cycle
        # What arrives from L2 is written to the data array; booked with the request's own cycles.
        self._sector_fill_cycles = gpu.l1.sector_bytes / gpu.l1.fill_bytes_per_cycle
        self._tagged_cycles = gpu.l1.tagged_request_cycles
        self._sector_out_cycles = gpu.l1.sector_bytes / gpu.l1.store_bytes_per_cycle
        self._partial_line_cycles = gpu.l1.partial_line_cycles
        self._since_shared = BESIDE_SHARED  # requests that passed the tag stage since the last that did not
        self._barrier = gpu.barrier
        self._unflushed = -1  # wavefronts of stores since the last flush; -1 where there was no access
        self._flushed = -FLUSH_SHARED_CYCLES
        self._entrance = Server()
        self.tags = Server()
        self.data = Server()
        self._out = Server()
        self.l2 = Server()
        self.dram = Server()

    def request(
        self, now: int, sub_partition: int, access: Access, cost: RecordCycles, arriving: dict[int, int]
    ) -> tuple[int, int, int]:
        """An instruction issues at cycle `now`: (cycle its queue entry is free, sources are read, it is complete).

        Complete means that a load's registers are written, or that a store has left the SM. `arriving` says when what
        the block's loads have asked L2 for is in L1: others with the same `fetch` find it there, and wait until then.
        """
        wavefronts, tag_cycles, l2_sectors, dram_sectors, in_flight, fetch, partial_lines = cost
        there = arriving.get(fetch, 0) if fetch else 0
        if there:
            l2_sectors = dram_sectors = in_flight = 0
        address_free = self._address_free
        address_cycles = self._address_cycles[access.shared_load]
        start = now + self._issue_to_address
        if address_free[sub_partition] > start:
            start = address_free[sub_partition]
        addressed = start + address_cycles
        idle_arrival = now + self._issue_to_address + address_cycles
        queue = self._in_shared_queue
        if queue:  # which takes one request at a time, as long as it has room
            if queue[0] > addressed:
                addressed = queue[0]
            addressed = self._entrance.book(now, addressed, self._request_cycles)
        data_cycles = wavefronts * self._cycles_per_wavefront
        begin = addressed  # at the latest stage so far
        if tag_cycles:
            begin = self.tags.book(now, begin, tag_cycles)
        if wavefronts:
            held = data_cycles if data_cycles > self._request_cycles else self._request_cycles
            if access.load or access.copy:
                held += l2_sectors * self._sector_fill_cycles
            if not tag_cycles:
                self._since_shared = 0
            elif self._since_shared < BESIDE_SHARED:
                held += self._tagged_cycles
                self._since_shared += 1
            begin = self.data.book(now, begin, held)
            self._unflushed = max(self._unflushed, 0)
            if not access.load and not access.copy:
                self._unflushed += wavefronts
        end = begin + (data_cycles if data_cycles > tag_cycles else tag_cycles)
        leaves = begin
        out_cycles = 0.0
        if l2_sectors and not access.load and not access.copy:
            out_cycles = l2_sectors * self._sector_out_cycles + partial_lines * self._partial_line_cycles
            leaves = self._out.book(now, begin, out_cycles)
        # A slow stage fills the queue before it; the address unit keeps a request until there is room in it.
        handed_over = leaves
        if queue:
            queue.popleft()
            queue.append(leaves)
            handed_over = addressed
        address_free[sub_partition] = handed_over
        sources_read = ceil(now + access.sources_read + addressed - idle_arrival + leaves - begin)
        waited = begin - idle_arrival
        if not access.load and not access.copy:
            if out_cycles:
                end = max(self._leave(now, max(end, leaves), l2_sectors, dram_sectors), leaves + out_cycles)
            return ceil(handed_over), sources_read, ceil(end)
        if access.shared_load:  # what it takes by itself, however many wavefronts a cycle all warps together get
            longer = access.narrow_latency + (wavefronts - 1) * self._wavefront_latency - access.latency
        else:
            longer = (wavefronts - access.base_wavefronts) * self._cycles_per_wavefront
        if tag_cycles - 1 > longer:
            longer = tag_cycles - 1
        latency = access.latency
        if longer > 0:
            latency += longer
        if l2_sectors:
            latency += self._miss(now, end, l2_sectors, dram_sectors, in_flight, access.latency)
        done = ceil(now + latency + waited)
        if there > done:
            done = there
        elif fetch and not there:
            arriving[fetch] = done
        return ceil(handed_over), sources_read, done

    def flush(self, now: float) -> None:
        """A barrier opens: what was accessed before it is flushed through the data stage, which nobody waits for.

        Barriers of several blocks that open at about the same time share a flush; where nothing was accessed since the
        last one there is none.
        """
        if self._unflushed < 0 or now < self._flushed + FLUSH_SHARED_CYCLES:
            return
        barrier = self._barrier
        stores = min(self._unflushed * barrier.flush_store_cycles, barrier.flush_most_store_cycles)
        self._flushed, self._unflushed = now, -1
        self.data.book(floor(now), now, barrier.flush_cycles + stores)

    def _miss(
        self, now: int, sent: float, l2_sectors: int, dram_sectors: int, in_flight: int, hit_latency: float
    ) -> float:
        """Cycles that a load's misses add to a hit; the measured latencies are those of one sector.

        What is on its way from DRAM for another SM comes no sooner, but takes nothing of this one's share.
        """
        rates = self._rates
        waited, arrival = 0.0, sent
        latency = rates.dram_latency_cycles if dram_sectors or in_flight else rates.l2_latency_cycles
        if dram_sectors:
            cycles = dram_sectors * self._sector_dram_cycles
            begin = self.dram.book(now, arrival, cycles)
            waited = begin - arrival + cycles - self._sector_dram_cycles
            arrival += waited
        cycles = l2_sectors * self._sector_l2_cycles
        begin = self.l2.book(now, arrival, cycles)
        waited += begin - arrival + cycles - self._sector_l2_cycles
        return latency - hit_latency + waited

    def _leave(self, now: int, sent: float, l2_sectors: int, dram_sectors: int) -> float:
        """Cycle at which a store's sectors have passed the SM's share of L2; the write to DRAM takes bandwidth only."""
        cycles = l2_sectors * self._sector_l2_cycles
        begin = self.l2.book(now, sent, cycles)
        if dram_sectors:
            self.dram.book(now, begin + cycles, dram_sectors * self._sector_dram_cycles)
        return begin + cycles
