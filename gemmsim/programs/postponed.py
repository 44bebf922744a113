"""Keeps launches that are timed but not yet executed for their results, until something needs what they store.

The rule. A launch may wait if it reads nothing that it stores to, and if all that the program can do with the memory
passes the machine. It is executed, after those before it, when something is about to read or to change what it stores
to, or to change what it reads. It is never executed where that can be told from its stores: because all memory that it
stores to was freed, or because a later launch stores to every byte of it, and none before it reads any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from gemmsim.programs.allocations import Allocation
from gemmsim.programs.footprints import Footprint


@dataclass(eq=False)
class Waiting:
    """A launch, executed or not.

    kernel     its name
    footprint  by positions in `reached`
    reached    the allocations that it can reach
    execute    executes it for its results, and stores them
    """

    kernel: str
    footprint: Footprint
    reached: Sequence[Allocation]
    execute: Callable[[], None] | None = None
    held: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reads = {self.reached[position] for position in self.footprint.reads}
        self.writes = {self.reached[position] for position in self.footprint.writes}

    def covers(self, earlier: Waiting, one: Allocation) -> bool:
        """Whether it stores to every byte of an allocation to which the earlier launch stores."""
        if self.footprint is earlier.footprint:
            return True
        stores, others = self.footprint.stores, earlier.footprint.stores
        if one not in self.writes or stores is None:
            return False
        mask = stores.mask(one.address, one.size)
        return bool(mask.all()) or (others is not None and bool((mask | ~others.mask(one.address, one.size)).all()))


class Postponed:
    """The launches that wait, in order."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, one: Waiting) -> None:
        """Let a launch wait. What it reads stays in memory as long, even if the program frees it."""
        one.held = [read.hold() for read in one.reads if read.hold is not None]
        self._waiting.append(one)
        self.forget()

    def writers(self, memory: Collection[Allocation], but: str = "") -> bool:
        """Whether a launch waits that stores to any of these, of whatever kernel `but` the one of this name."""
        return any(one.kernel != but and not one.writes.isdisjoint(memory) for one in self._waiting)

    def before_read(self, memory: Collection[Allocation]) -> None:
        """Execute what stores to any of these."""
        if self._waiting:
            self._execute(lambda one: not one.writes.isdisjoint(memory))

    def before_write(self, memory: Collection[Allocation]) -> None:
        """Execute what reads any of these, or stores to it."""
        if self._waiting:
            self._execute(lambda one: not (one.reads | one.writes).isdisjoint(memory))

    def before_launch(self, launch: Waiting) -> None:
        """Execute what has to be before a launch stores its results."""
        if self._waiting:
            own = launch.reads | launch.writes
            self._execute(lambda one: not (one.writes.isdisjoint(own) and one.reads.isdisjoint(launch.writes)), launch)

    def forget(self) -> None:
        """Drop the launches of which all that they store to is freed, unless one that still waits reads it."""
        kept: list[Waiting] = []
        read: set[Allocation] = set()
        for one in reversed(self._waiting):
            if any(memory in read or not memory.gone for memory in one.writes):
                kept.append(one)
                read |= one.reads
        self._waiting = kept[::-1]

    def _execute(self, wanted: Callable[[Waiting], bool], after: Waiting | None = None) -> None:
        """Execute the launches up to the last that is wanted, but for those whose stores are overwritten.

        after  the launch that is about to be executed
        """
        self.forget()
        last = max((number for number, one in enumerate(self._waiting, 1) if wanted(one)), default=0)
        every = [*self._waiting, *([after] if after else [])]
        chosen = [one for number, one in enumerate(every[:last]) if not _overwritten(one, every[number + 1 :])]
        self._waiting = self._waiting[last:]
        for one in chosen:
            assert one.execute is not None
            one.execute()


def _overwritten(one: Waiting, later: Sequence[Waiting]) -> bool:
    """Whether later launches store to all that a launch stores to, before any of them reads it."""
    left = {memory for memory in one.writes if not memory.gone}
    for other in later:
        if not one.writes.isdisjoint(other.reads):
            return False
        left = {memory for memory in left if not other.covers(one, memory)}
        if not left:
            return True
    return False
