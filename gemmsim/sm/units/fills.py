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


def place_for(fills: Fills, at: float) -> int:
    """Make room for data that comes in cycle `at`, behind what comes no later; return which of `rows` it is."""
    entries = fills.room.entries
    i = fills.count
    while i > 0 and fills.rows[(fills.first + i - 1) % entries].at > at:
        _copy(fills.rows[(fills.first + i) % entries], fills.rows[(fills.first + i - 1) % entries])
        i -= 1
    fills.count += 1
    if fills.count + RESERVE > entries:
        fills.room.short = 1
    return (fills.first + i) % entries


def _copy(to: Fill, fill: Fill) -> None:
    to.at = fill.at
    to.cycles = fill.cycles
    to.until_use = fill.until_use
    to.expected = fill.expected
    to.warp = fill.warp
    to.rank = fill.rank
    to.scoreboard = fill.scoreboard
    to.reason = fill.reason
