"""One SM as SimPy processes: a block scheduler that fills it, sub-partitions that issue, the memory path they share."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from math import ceil

import numpy as np
import simpy
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.sm.code import Issue, Reason
from gemmsim.sm.fetch import InstructionCache
from gemmsim.sm.memory_path import MemoryPath, Rates
from gemmsim.sm.observer import Observer
from gemmsim.sm.pipes import port_pipes
from gemmsim.sm.servers import Pipe, Port, Queue, Server
from gemmsim.sm.streams import WarpStream
from gemmsim.sm.sub_partition import SubPartition
from gemmsim.sm.totals import Totals
from gemmsim.sm.types import STALL_REASONS
from gemmsim.sm.warp import Block, Warp


class Core:
    """The SM. `run` simulates the blocks given, `resident` at once."""

    def __init__(
        self,
        table: tuple[Issue, ...],
        gpu: GpuSpec,
        rates: Rates,
        observer: Observer | None = None,
        oldest_block_first: bool = True,
    ) -> None:
        self.env = simpy.Environment()
        self.table = table
        self.observer = observer
        self.oldest_block_first = oldest_block_first
        self.memory = MemoryPath(gpu, rates)
        self.stall_cycles = [[0.0] * len(STALL_REASONS) for _ in table]
        self.issued = [0] * len(table)
        self.issued_in_all = 0
        self.next_mark = -1
        self._marks: Iterator[int] = iter(())
        self.snapshots: list[Totals] = []
        # scoreboards whose outstanding operations a DEPBAR counts
        self.counted = frozenset(row.drain_to[0] for row in table if row.drain_to is not None)
        self.fetch = InstructionCache(gpu.fetch)
        self._arrivals = Server()
        # At least one cycle each: what one unit does in a cycle, another sees in the next.
        self._release_cycles = max(1.0, gpu.barrier.release_cycles)
        self._block_start_cycles = max(1, round(gpu.launch.block_start_cycles))
        self._gpu = gpu
        self._block_ends: list[float] = []
        self._vacated: simpy.Store
        self.sub_partitions = [self._sub_partition(index) for index in range(gpu.sm.sub_partitions)]

    def _sub_partition(self, index: int) -> SubPartition:
        pipes = {name: Pipe(name, pipe.issue_interval_cycles) for name, pipe in self._gpu.pipes.items()}
        queue = Queue(self._gpu.mio.queue_entries)
        ports: dict[str, Port] = {"lsu": queue}
        for name in {row.port for row in self.table} - {"lsu"}:
            ports[name] = Port([pipes[pipe] for pipe in port_pipes(name, pipes)])
        return SubPartition(self, index, pipes, ports, queue)

    def run(self, blocks: Sequence[Sequence[WarpStream]], resident: int, marks: Sequence[int] = ()) -> Totals:
        """Simulate `blocks` (a stream each warp), at most `resident` at a time, from an empty SM to the last exit.

        marks  ascending numbers of issued instructions at which a snapshot of the totals so far is kept
        """
        self._marks = iter(marks)
        self.next_mark = next(self._marks, -1)
        self._vacated = simpy.Store(self.env)
        self._vacated.items.extend(range(resident))
        self.env.process(self._schedule_blocks(blocks))
        self.env.run()
        ends = np.sort(np.array(self._block_ends))
        return self._totals(float(ends[-1]), ends)

    def mark(self, now: int) -> None:
        """`next_mark` instructions have issued."""
        self.next_mark = next(self._marks, -1)
        self.snapshots.append(self._totals(float(now), np.zeros(0)))

    def _totals(self, cycles: float, ends: NDArray[np.float64]) -> Totals:
        stalls = np.array(self.stall_cycles)
        issued = np.array(self.issued, np.float64)
        stalls[:, Reason["SELECTED"]] = issued
        parts = self.sub_partitions
        busy = {
            name: sum(part.pipes[name].issued for part in parts) * unit.interval / len(parts)
            for name, unit in parts[0].pipes.items()
        }
        busy["lsu"] = self.memory.data.busy_cycles
        return Totals(cycles, stalls, issued, busy, ends)

    def _schedule_blocks(self, blocks: Sequence[Sequence[WarpStream]]) -> Generator[simpy.Event, int, None]:
        """The block scheduler: the next block starts when a resident one has left."""
        launched = 0
        for number, streams in enumerate(blocks):
            slot: int = yield self._vacated.get()
            warps = [(w, stream) for w, stream in enumerate(streams) if len(stream.pcs)]
            block = Block(len(warps), slot, number if self.oldest_block_first else 0)
            for w, stream in warps:
                position = slot * len(streams) + w
                part = self.sub_partitions[position % len(self.sub_partitions)]
                launched += 1
                start = int(self.env.now) + self._block_start_cycles
                if self.observer is not None:
                    self.observer.on_start(start, part.index, position, number)
                part.add(Warp(stream, block, -launched, position, part), start)

    def release(self, warps: list[Warp] | None, now: float) -> None:
        """Warps that waited at a barrier go on: the last one it waited for was counted, or has ended, at `now`."""
        if warps:
            self.memory.flush(now)
        for warp in warps or ():
            warp.sub_partition.open_barrier(warp, ceil(now + self._release_cycles))

    def arrive(self, warp: Warp, barrier: tuple[int, int, bool], now: int) -> None:
        """A warp issues a barrier instruction: the SM counts arrivals one after another."""
        number, expected, waits = barrier
        cycles = self._gpu.barrier.arrival_cycles
        counted = self._arrivals.book(now, now, cycles) + cycles
        self.release(warp.block.arrive(number, expected, warp, waits), counted)

    def warp_ended(self, warp: Warp, now: int, end: int) -> None:
        """A warp issued its last instruction in cycle `now`; its place is free at `end`."""
        block = warp.block
        block.end = max(block.end, end)
        self.release(block.leave(), now)
        if block.live == 0:
            self._block_ends.append(block.end)
            self.env.process(self._vacate(block.slot, block.end - now))

    def _vacate(self, slot: int, cycles: int) -> Generator[simpy.Event, None, None]:
        yield self.env.timeout(cycles)
        self._vacated.put(slot)
