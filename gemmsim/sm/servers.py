"""Shared hardware that takes requests one after another, booked by time instead of simulated by event.

A request's times are known when its instruction issues, so a server answers "when do you start this?" at once; no SimPy
event is needed to hold it. That is what keeps the model at about one event an issued instruction.
"""

from __future__ import annotations

from collections import deque
from math import ceil


class Server:
    """One unit that serves one request at a time (L1's tag or data stage, a share of L2 or DRAM bandwidth).

    Requests are booked in the order in which their instructions issue, but those of different sub-partitions reach the
    unit in another order, each having its own queue. A request therefore takes the first idle gap that holds it.
    """

    __slots__ = ("_gaps", "busy_cycles", "next_free")

    def __init__(self) -> None:
        self.next_free = 0.0
        self.busy_cycles = 0.0
        self._gaps: list[tuple[float, float]] = []  # idle intervals before next_free, ascending

    def book(self, now: float, arrival: float, cycles: float) -> float:
        """Start of a request that reaches the unit at `arrival` and occupies it for `cycles`.

        `now` (not after any later arrival) lets gaps that nobody can use any more be forgotten.
        """
        self.busy_cycles += cycles
        gaps = self._gaps
        if gaps:
            while gaps and gaps[0][1] <= now:
                del gaps[0]
            for position, (start, end) in enumerate(gaps):
                begin = start if start > arrival else arrival
                if begin + cycles <= end:
                    rest = [gap for gap in ((start, begin), (begin + cycles, end)) if gap[0] < gap[1]]
                    gaps[position : position + 1] = rest
                    return begin
        begin = self.next_free
        if arrival > begin:
            gaps.append((begin, arrival))
            begin = arrival
        self.next_free = begin + cycles
        return begin


class Pipe:
    """One execution pipe of a sub-partition: a warp instruction every `interval` cycles."""

    __slots__ = ("free", "interval", "issued", "name", "ports")

    def __init__(self, name: str, interval: float) -> None:
        self.name = name
        self.interval = interval
        self.free = 0.0
        self.issued = 0.0  # intervals
        self.ports: list[Port] = []


class Port:
    """What a warp must find free to issue: any one of some pipes, or, for a `Queue`, an entry of it.

    next_free       first cycle at which an instruction can issue here
    blocked_cycles  cycles up to `next_free` during which none could: the difference between two moments tells how
                    long a waiting warp was throttled, without looking at each cycle
    """

    __slots__ = ("blocked_cycles", "next_free", "pipes")

    def __init__(self, pipes: list[Pipe]) -> None:
        self.next_free = 0
        self.blocked_cycles = 0
        self.pipes = pipes
        for pipe in pipes:
            pipe.ports.append(self)

    def blocked_before(self, cycle: int) -> int:
        """Blocked cycles before `cycle`, which is not before the last issue here."""
        ahead = self.next_free - cycle
        return self.blocked_cycles - ahead if ahead > 0 else self.blocked_cycles

    def take(self, now: int, slots: float = 1.0) -> None:
        """Issue at cycle `now`, not before `next_free`, into the first pipe that is free, for `slots` intervals."""
        for pipe in self.pipes:
            free = pipe.free
            if free <= now:
                pipe.issued += slots
                cycles = pipe.interval * slots
                # Used without a pause, a pipe with a fractional interval keeps the fraction: its average rate is exact.
                pipe.free = (free if free > now - 1 else now) + cycles
                if cycles > 1:
                    for port in pipe.ports:
                        port._block_until(now, port._free_at())
                return

    def _free_at(self) -> int:
        if len(self.pipes) == 1:
            return ceil(self.pipes[0].free)
        return ceil(min([pipe.free for pipe in self.pipes]))

    def _block_until(self, now: int, cycle: int) -> None:
        if cycle > now + 1:
            self.blocked_cycles += cycle - (now + 1)
            self.next_free = cycle


class Queue(Port):
    """A sub-partition's queue of memory instructions: an entry is held from issue until the data stage takes it."""

    __slots__ = ("_entries", "_releases")

    def __init__(self, entries: int) -> None:
        super().__init__([])
        self._entries = entries
        self._releases: deque[int] = deque()

    def hold(self, now: int, release: int) -> None:
        """Issue at cycle `now`; the entry is free again at `release` (not before that of any earlier one)."""
        releases = self._releases
        while releases and releases[0] <= now:
            releases.popleft()
        releases.append(release)
        if len(releases) == self._entries:
            self._block_until(now, releases[0])
