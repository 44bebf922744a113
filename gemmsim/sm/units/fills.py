"""What loads that missed L1 wait for: data on its way from L2, in the order in which it will come."""

from __future__ import annotations

from gemmsim.native.records import Record, Rows
from gemmsim.sm.units.server import RESERVE, Room


class Fill(Record):
    """The data of a load that is on its way.

    at          the cycle in which it arrives at the data stage
    cycles      for how long it has the stage yet to take
    until_use   cycles from when it has left the stage until an instruction may use it
    expected    the cycle in which one may if nothing else has the stage
    warp, rank  the slot of the load's warp, and its `Warp.rank`
    scoreboard, reason  what the load holds, and the stall reason of a wait for it
    """

    at: float
    cycles: float
    until_use: float
    expected: int
    warp: int
    rank: int
    scoreboard: int
    reason: int


class Fills(Record):
    """What is on its way: `count` rows of the ring `rows`, of `room.entries` entries, from `first` on, the next first.

    free  the cycle in which the data stage is done with what it has taken of those that have come
    turn  for how long it takes of them until another request may pass, but at least a cycle; 0 before the first request
    """

    free: float
    turn: float
    first: int
    count: int
    rows: Rows[Fill]
    room: Room


def expect_fill(fills: Fills) -> None:
    """Sort the last row, which has just been written, behind the others, to its place."""
    entries = fills.room.entries
    i = fills.count
    fills.count += 1
    if fills.count + RESERVE > entries:
        fills.room.short = 1
    while i > 0:
        fill, before = fills.rows[(fills.first + i) % entries], fills.rows[(fills.first + i - 1) % entries]
        if before.at <= fill.at:
            return
        _exchange(fill, before)
        i -= 1


def _exchange(one: Fill, other: Fill) -> None:
    at, cycles, until_use = one.at, one.cycles, one.until_use
    expected, warp, rank, scoreboard, reason = one.expected, one.warp, one.rank, one.scoreboard, one.reason
    one.at = other.at
    one.cycles = other.cycles
    one.until_use = other.until_use
    one.expected = other.expected
    one.warp = other.warp
    one.rank = other.rank
    one.scoreboard = other.scoreboard
    one.reason = other.reason
    other.at = at
    other.cycles = cycles
    other.until_use = until_use
    other.expected = expected
    other.warp = warp
    other.rank = rank
    other.scoreboard = scoreboard
    other.reason = reason
