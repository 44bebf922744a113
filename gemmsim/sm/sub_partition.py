"""A sub-partition: the scheduler that issues one warp instruction a cycle, as a SimPy process.

The process sleeps until the next cycle at which something can issue. What holds each warp, and from when to when, is
known without looking at the cycles in between, so stall reasons are intervals, attributed when they end.

Scheduling policy: the warp that issued last goes on if it can at once, that is when the next instruction may be issued;
else a warp of the oldest block that has one that can, and of that block the youngest ("greedy, then youngest": Huerta
et al., "Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO'25). Warps of a block take turns with the
pipes that `code.ROTATING` names: the ones whose last such instruction is longest ago go first.

Found on an H200 (own microbenchmarks, tests/records): of two to four blocks on an SM the oldest ends first, in the time
that it takes alone, whatever they execute, and a later block comes after those that were there. Within a block, eight
warps of a sub-partition that issue independent multiplies advance unevenly, two by two, the youngest first; but eight
that wait for dependent results or for a full integer or MUFU pipe advance alike, within 10 %, which is not modelled: in
a trial, blocks of 32 warps that wait for L2 then moved in step, and the coalesced kernel took twice as long on an RTX
A6000 as it does (see the known deviations).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Generator
from contextlib import suppress
from heapq import heappop, heappush
from math import ceil, inf
from typing import TYPE_CHECKING

import simpy
from simpy.events import NORMAL, EventPriority

from gemmsim.sm.code import Kind, Reason
from gemmsim.sm.registers import NO_OPERANDS, RegisterPorts
from gemmsim.sm.servers import Pipe, Port, Queue
from gemmsim.sm.warp import Warp
from gemmsim.sm.write_ports import NONE, WritePorts

if TYPE_CHECKING:
    from gemmsim.sm.core import Core

_WAIT, _NOT_SELECTED, _BARRIER = int(Reason["WAIT"]), int(Reason["NOT_SELECTED"]), int(Reason["BARRIER"])
_BRANCH_RESOLVE, _DRAIN = int(Reason["BRANCH_RESOLVE"]), int(Reason["DRAIN"])
_NO_INSTRUCTION = int(Reason["NO_INSTRUCTION"])
_DISPATCH_STALL = int(Reason["DISPATCH_STALL"])
_PLAIN, _MEMORY, _BARRIER_KIND = int(Kind.PLAIN), int(Kind.MEMORY), int(Kind.BARRIER)
# Cycles from issue until the sources of a variable-latency operation are read: those of a global load (Huerta et al.,
# table 2); the other units are taken to be alike.
SOURCES_READ_CYCLES = 11


class _Turn(simpy.Event):
    """A timeout after which sub-partitions that look in the same cycle do so in the order of their numbers."""

    def __init__(self, env: simpy.Environment, delay: float, index: int) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, EventPriority(NORMAL + 1 + index), delay)


class SubPartition:
    """`waiting` has the warps whose own state holds them back, by the cycle they are ready."""

    def __init__(self, core: Core, index: int, pipes: dict[str, Pipe], ports: dict[str, Port], queue: Queue) -> None:
        self.core = core
        self.index = index
        self.pipes = pipes
        self.queue = queue
        self.table = core.table
        self.port_of = [ports[row.port] for row in core.table]
        self.holds = [bool(row.waits) or row.drain_to is not None for row in core.table]
        self.passes = [row.passes_barrier for row in core.table]
        self.stall_cycles, self.issued = core.stall_cycles, core.issued
        self.waiting: list[tuple[int, int, Warp]] = []
        self.registers = RegisterPorts()
        self.write_ports = WritePorts()
        self.line_instructions = core.fetch.instructions_per_line
        self.wakes: float = 0.0  # the cycle at which the process looks again
        self.process = core.env.process(self._run())

    def add(self, warp: Warp, ready: int) -> None:
        """A new warp, whose first instruction may issue at cycle `ready`."""
        warp.ready = warp.started = ready
        warp.port = self.port_of[warp.pc]
        self.fetch(warp, warp.pc // self.line_instructions, ready)
        self._enqueue(warp)

    def _enqueue(self, warp: Warp) -> None:
        heappush(self.waiting, (warp.ready, warp.rank, warp))
        if self.wakes > warp.ready and self.core.env.active_process is not self.process:
            self.wakes = warp.ready
            self.process.interrupt()

    def _run(self) -> Generator[simpy.Event, None, None]:
        env, waiting, registers = self.core.env, self.waiting, self.registers
        eligible: list[tuple[int, int, int, Warp]] = []  # the others, in the order of the policy
        last: Warp | None = None  # issued most recently, in cycle `issued`
        issued = -1
        while True:
            now = int(env.now)
            while waiting and waiting[0][0] <= now:
                ready, rank, warp = heappop(waiting)
                warp.blocked_before = warp.port.blocked_before(ready)
                warp.dispatch_before = registers.blocked_before(ready)
                insort(eligible, (warp.block.order, warp.issued, rank, warp))
            chosen = None
            if registers.next_free <= now:
                chosen = self._select(eligible, last if now == max(issued + 1, registers.next_free) else None, now)
            if chosen is not None:
                last, issued = chosen, now
                if self._issue(chosen, now):
                    heappush(waiting, (chosen.ready, chosen.rank, chosen))
            wakes = waiting[0][0] if waiting else inf
            for _, _, _, warp in eligible:
                free = warp.port.next_free
                if free < wakes:
                    wakes = free
                    if free <= now:
                        break
            if wakes < registers.next_free:
                wakes = registers.next_free
            self.wakes = wakes = wakes if wakes > now else now + 1
            with suppress(simpy.Interrupt):  # a barrier opened, or a block arrived: something may issue sooner
                yield _Turn(env, wakes - now, self.index) if wakes < inf else env.event()

    @staticmethod
    def _select(eligible: list[tuple[int, int, int, Warp]], last: Warp | None, now: int) -> Warp | None:
        """`last` if it can, else the first that can: `eligible` is in the order of the policy."""
        choice = -1
        greedy = last is not None and last.ready <= now
        for position, (_, _, _, warp) in enumerate(eligible):
            if warp.port.next_free <= now:
                if warp is last:
                    choice = position
                    break
                if choice < 0:
                    choice = position
                    if not greedy:
                        break
        return None if choice < 0 else eligible.pop(choice)[3]

    def _issue(self, warp: Warp, now: int) -> bool:
        """Issue the warp's next instruction; False where the warp ends or waits for others."""
        core, pc, port, stall_cycles = self.core, warp.pc, warp.port, self.stall_cycles
        observer = core.observer
        row = self.table[pc]
        kind, delay, taken_delay, _, _, write, read, latency, result_reason, throttle_reason = row[1:11]
        access, barrier, slots, operands, windows, rotates, _, results, returns = row[11:]
        self.issued[pc] += 1
        core.issued_in_all += 1
        if core.issued_in_all == core.next_mark:
            core.mark(now)
        late = now - warp.ready
        if late:
            blocked = port.blocked_cycles - warp.blocked_before
            cycles = stall_cycles[pc]
            stalled = min(self.registers.blocked_cycles - warp.dispatch_before, late - blocked)
            cycles[throttle_reason] += blocked
            cycles[_DISPATCH_STALL] += stalled
            cycles[_NOT_SELECTED] += late - blocked - stalled
            if observer is not None:
                begin = warp.ready
                observer.on_stall(warp.slot, pc, throttle_reason, begin, begin + blocked)
                observer.on_stall(warp.slot, pc, _DISPATCH_STALL, begin + blocked, begin + blocked + stalled)
                observer.on_stall(warp.slot, pc, _NOT_SELECTED, begin + blocked + stalled, now)
        if rotates or not core.oldest_block_first:
            warp.issued = now
        if observer is not None:
            observer.on_issue(now, self.index, warp.slot, pc)

        if kind == _MEMORY:
            cost = next(warp.costs)
            release, read_done, done = core.memory.request(now, self.index, access, cost, warp.block.arriving)
            self.queue.hold(now, release)
            if observer is not None:
                observer.on_memory(warp.slot, pc, now, done, cost)
            if returns is not NONE:
                self.write_ports.expect(done, returns)
            if access.copy:
                warp.copies_done = max(warp.copies_done, done)
            elif not access.load:
                warp.stores_done = max(warp.stores_done, done)
        else:
            port.take(now, slots)
            if operands is not NO_OPERANDS:
                self.registers.read(now, operands, windows, warp.rank)
            if write is not None or read is not None:
                read_done = now + SOURCES_READ_CYCLES
                done = now + round(latency)
                if kind == Kind.COPY_FENCE:
                    done = max(done, warp.copies_done)
        held = self.write_ports.write(now, results)
        if held:
            self.registers.hold(now, held)
        if write is not None:
            _hold(warp, write, done, result_reason, core.counted)
        if read is not None:
            _hold(warp, read, read_done, result_reason, core.counted)

        position = warp.position = warp.position + 1
        if position == warp.length:
            end = max(now + 1, warp.stores_done)
            stall_cycles[pc][_DRAIN] += end - (now + 1)
            if observer is not None:
                observer.on_stall(warp.slot, pc, _DRAIN, now + 1, end)
                observer.on_end(end, warp.slot)
            core.warp_ended(warp, now, end)
            return False
        next_pc = warp.pcs[position]
        warp.pc = next_pc
        warp.port = self.port_of[next_pc]
        if next_pc == pc + 1:
            ready = now + delay
        else:
            ready = now + taken_delay
            stall_cycles[next_pc][_BRANCH_RESOLVE] += taken_delay - delay
        if delay > 1:
            stall_cycles[next_pc][_WAIT] += delay - 1
        if observer is not None:
            observer.on_stall(warp.slot, next_pc, _WAIT, now + 1, now + delay)
            observer.on_stall(warp.slot, next_pc, _BRANCH_RESOLVE, now + delay, ready)
        warp.ready = ready
        if kind == _BARRIER_KIND:
            warp.behind = barrier[2]
            core.arrive(warp, barrier, now)
        if not self.passes[next_pc]:
            if warp.behind:
                warp.parked = True
                return False
            self._wait_for_barrier(warp)
        if self.holds[next_pc]:
            self.hold_for_scoreboards(warp)
        line = next_pc // self.line_instructions
        if line != warp.line:
            self.fetch(warp, line, now)
        return True

    def _wait_for_barrier(self, warp: Warp) -> None:
        """The warp's next instruction does not issue before the barrier that opened last did."""
        if warp.opens > warp.ready:
            self.stall_cycles[warp.pc][_BARRIER] += warp.opens - warp.ready
            if self.core.observer is not None:
                self.core.observer.on_stall(warp.slot, warp.pc, _BARRIER, warp.ready, warp.opens)
            warp.ready = warp.opens

    def fetch(self, warp: Warp, line: int, now: int) -> None:
        """The warp's next instruction is on another line of code."""
        warp.line = line
        there = ceil(self.core.fetch.fetch(line, now))
        if there > warp.ready:
            self.stall_cycles[warp.pc][_NO_INSTRUCTION] += there - warp.ready
            if self.core.observer is not None:
                self.core.observer.on_stall(warp.slot, warp.pc, _NO_INSTRUCTION, warp.ready, there)
            warp.ready = there

    def hold_for_scoreboards(self, warp: Warp) -> None:
        """Move `ready` of the warp to the cycle at which the scoreboards let its next instruction go."""
        row = self.table[warp.pc]
        ready, reason = warp.ready, -1
        for scoreboard in row.waits:
            free = warp.scoreboards[scoreboard]
            if free > ready:
                ready, reason = free, warp.reasons[scoreboard]
        if row.drain_to is not None:
            scoreboard, most = row.drain_to
            releases = sorted(warp.outstanding[scoreboard])
            if len(releases) > most and releases[len(releases) - most - 1] > ready:
                ready, reason = releases[len(releases) - most - 1], warp.reasons[scoreboard]
            warp.outstanding[scoreboard] = [release for release in releases if release > ready]
        if reason >= 0:
            self.stall_cycles[warp.pc][reason] += ready - warp.ready
            if self.core.observer is not None:
                self.core.observer.on_stall(warp.slot, warp.pc, reason, warp.ready, ready)
            warp.ready = ready

    def open_barrier(self, warp: Warp, cycle: int) -> None:
        """The barrier that the warp waits at opens at `cycle`."""
        warp.behind, warp.opens = False, cycle
        if warp.parked:
            warp.parked = False
            self._wait_for_barrier(warp)
            self.hold_for_scoreboards(warp)
            self._enqueue(warp)


def _hold(warp: Warp, scoreboard: int, release: int, reason: int, counted: frozenset[int]) -> None:
    """The scoreboard is not free before `release`; operations may be released in another order than issued."""
    if release > warp.scoreboards[scoreboard]:
        warp.scoreboards[scoreboard] = release
        warp.reasons[scoreboard] = reason
    if scoreboard in counted:
        warp.outstanding[scoreboard].append(release)
