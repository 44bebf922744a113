"""The state of a warp and of its block while they are resident on an SM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmsim.sm.code import SCOREBOARDS
from gemmsim.sm.streams import WarpStream

if TYPE_CHECKING:
    from gemmsim.sm.servers import Port
    from gemmsim.sm.sub_partition import SubPartition


class Warp:
    """One resident warp; `rank` is below that of every older one.

    pc, ready, port           next instruction, first cycle at which the warp's own state lets it issue, where it issues
    position, length, costs   progress in the stream
    line                      line of code that it was fetched from last
    scoreboards, reasons      a scoreboard: cycle at which it is free, stall reason of who waits for it
    outstanding               a scoreboard: release cycles of its operations, where a DEPBAR counts them
    blocked_before            blocked cycles of `port` before `ready`; dispatch_before: of the register ports
    issued                    cycle of the last issue that counts for whose turn it is, -1 before the first
    behind, opens, parked     whether it waits at a barrier that is not open yet, when the last one opened, whether its
                              next instruction does not issue before that
    stores_done, copies_done  cycle at which the warp's stores have left the SM, its LDGSTS have arrived
    """

    __slots__ = (
        "behind",
        "block",
        "blocked_before",
        "copies_done",
        "costs",
        "dispatch_before",
        "issued",
        "length",
        "line",
        "opens",
        "outstanding",
        "parked",
        "pc",
        "pcs",
        "port",
        "position",
        "rank",
        "ready",
        "reasons",
        "scoreboards",
        "slot",
        "started",
        "stores_done",
        "sub_partition",
    )

    def __init__(self, stream: WarpStream, block: Block, rank: int, slot: int, sub_partition: SubPartition) -> None:
        self.block = block
        self.rank = rank
        self.slot = slot
        self.sub_partition = sub_partition
        self.pcs, costs = stream.lists
        self.length = len(self.pcs)
        self.costs = iter(costs)
        self.position = 0
        self.pc = self.pcs[0]
        self.port: Port
        self.ready = self.started = 0
        self.line = -1
        self.blocked_before = 0
        self.issued = -1
        self.dispatch_before = 0
        self.scoreboards = [0] * SCOREBOARDS
        self.reasons = [0] * SCOREBOARDS
        self.outstanding: list[list[int]] = [[] for _ in range(SCOREBOARDS)]
        self.stores_done = self.copies_done = 0
        self.behind = self.parked = False
        self.opens = 0


class Block:
    """A resident block: which of its warps have arrived at which barrier, and how many are still running."""

    __slots__ = ("arrived", "arriving", "end", "live", "order", "slot", "waiting")

    def __init__(self, warps: int, slot: int, order: int) -> None:
        self.live = warps
        self.slot = slot
        self.order = order  # the lowest goes first
        self.end = 0
        self.arriving: dict[int, int] = {}  # fetch -> cycle at which it is in L1
        self.arrived: dict[int, int] = {}  # barrier -> warps
        self.waiting: dict[int, list[Warp]] = {}

    def arrive(self, barrier: int, expected: int, warp: Warp, waits: bool) -> list[Warp] | None:
        """A warp arrives; returns the warps to release (it among them, if it waits) where it was the last one."""
        self.arrived[barrier] = self.arrived.get(barrier, 0) + 1
        if waits:
            self.waiting.setdefault(barrier, []).append(warp)
        return self._complete(barrier, expected or self.live)

    def leave(self) -> list[Warp]:
        """A warp ends; a barrier for the whole block does not wait for it. Returns the warps this releases."""
        self.live -= 1
        return [warp for barrier in list(self.waiting) for warp in self._complete(barrier, self.live) or ()]

    def _complete(self, barrier: int, expected: int) -> list[Warp] | None:
        if self.arrived[barrier] < expected:
            return None
        self.arrived[barrier] = 0
        return self.waiting.pop(barrier, [])
