"""The SM driven by SimPy: a block scheduler and sub-partitions as processes, which observers can watch.

A process calls the functions of `units`, compiled, and sleeps until its unit can do something again. The memory path
needs no process: what it serves is booked in advance (`units.server`), when an instruction issues.
"""

from __future__ import annotations

from collections.abc import Generator

import simpy
from simpy.events import NORMAL, EventPriority

from gemmsim.sm.native_drive import native
from gemmsim.sm.observer import Observer
from gemmsim.sm.state import State
from gemmsim.sm.units.events import ACCESSED, ENDED, FILLED, ISSUED, OPENED, STALLED, STARTED
from gemmsim.sm.units.machine import NEVER

Process = Generator[simpy.Event, int, None]


class _Turn(simpy.Event):
    """A timeout with a priority, so that sub-partitions that wake in the same cycle have their turns in the order of
    their numbers.
    """

    def __init__(self, env: simpy.Environment, delay: float, priority: EventPriority) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, priority, delay)


class SimpyDrive:
    """One run of `state`, of which nothing may have been simulated yet; `observer` is told what happens on the SM."""

    def __init__(self, state: State, observer: Observer | None = None) -> None:
        self._state, self._observer = state, observer
        self._env = simpy.Environment()
        self._vacant = simpy.Store(self._env)
        self._vacant.items.extend(range(state.sm.resident))
        self._turn = native("units.scheduler", "turn").bound(state.sm, 0, 0)
        self._start_block = native("units.blocks", "start_block").bound(state.sm, 0, 0)
        self._release_one = native("units.gates", "release_one").bound(state.sm, 0)
        self._wakes, self._stride = state.wakes, state.wakes_stride
        self._ended = 0
        count = state.sm.spec.sub_partitions
        self._asleep_until = [NEVER] * count
        self._processes = [self._env.process(self._sub_partition(number)) for number in range(count)]

    def run(self) -> None:
        """Simulate from an empty SM until the last block has left."""
        self._env.process(self._block_scheduler())
        self._env.run()
        while self._release_one(int(self._env.now)):
            self._tell()
            self._wake_others()
            self._env.run()

    def _block_scheduler(self) -> Process:
        """The SimPy process that starts the blocks of the grid in order, each as soon as the SM has room for it."""
        for _ in range(self._state.sm.grid_blocks):
            slot: int = yield self._vacant.get()
            self._start_block(slot, int(self._env.now))
            self._tell()
            self._wake_others()

    def _sub_partition(self, number: int) -> Process:
        env, asleep, wakes, place = self._env, self._asleep_until, self._wakes, number * self._stride
        turn, lists_short, observer = self._turn, self._state.lists_short, self._observer
        priority = EventPriority(NORMAL + 1 + number)
        while True:
            asleep[number] = cycle = wakes[place]
            try:
                yield _Turn(env, cycle - env.now, priority) if cycle < NEVER else env.event()
            except simpy.Interrupt:  # a barrier opened, or a block began: something may issue sooner
                continue
            attention = turn(number, cycle)
            if observer is not None:
                self._tell()
            if attention:
                asleep[number] = wakes[place]
                self._wake_others()
                self._vacate()
            if lists_short[0]:
                self._state.grow()

    def _wake_others(self) -> None:
        """Wake the sub-partitions whose `wakes` the unit just simulated has moved to an earlier cycle, so that they
        sleep only until then.
        """
        for number, process in enumerate(self._processes):
            cycle = self._wakes[number * self._stride]
            if cycle < self._asleep_until[number]:
                self._asleep_until[number] = cycle
                process.interrupt()

    def _vacate(self) -> None:
        """Make room for later blocks: a place is vacant once its block has ended and its stores have left the SM."""
        sm = self._state.sm
        while self._ended < sm.ended:
            end, slot = sm.block_ends[self._ended], sm.ended_slots[self._ended]
            self._env.process(self._leave(slot, end - int(self._env.now)))
            self._ended += 1

    def _leave(self, slot: int, cycles: int) -> Process:
        yield self._env.timeout(cycles)
        yield self._vacant.put(slot)

    def _tell(self) -> None:
        observer = self._observer
        if observer is None:
            return
        parts = len(self._processes)
        for kind, begin, end, warp, instruction, detail in self._state.take_events():
            if kind == STALLED:
                observer.on_stall(warp, instruction, detail, begin, end)
            elif kind == ISSUED:
                observer.on_issue(begin, detail, warp, instruction)
            elif kind == ACCESSED:
                observer.on_memory(warp, instruction, begin, end, detail)
            elif kind == FILLED:
                observer.on_fill(begin, warp, detail)
            elif kind == OPENED:
                observer.on_open(begin, warp, detail)
            elif kind == STARTED:
                observer.on_start(begin, warp % parts, warp, detail)
            elif kind == ENDED:
                observer.on_end(begin, warp)
