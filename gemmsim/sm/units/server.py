"""A unit that serves one request at a time: L1's tag or data stage, a share of L2's or DRAM's bandwidth.

A request's times are known when its instruction issues, so a server answers at once when it will start. No event is
needed to hold the request, which keeps the model at about one event an issued instruction.

Requests are booked in the order in which their instructions issue, but those of different sub-partitions reach the unit
in another order, because each sub-partition has a queue of its own. A request therefore takes the first idle gap that
is long enough for it.
"""

from __future__ import annotations

from gemmsim.native.records import Reals, Record

RESERVE = 64  # free entries with which a list that has no bound of its own goes into a turn


class Room(Record):
    """How long those lists of a simulation are whose length nothing bounds, such as `Server.bounds`.

    entries  how many entries each such list has room for
    short    1 where a list has fewer than RESERVE of them left, so that all must grow before the next turn
    """

    entries: int
    short: int


class Server(Record):
    """What has been booked of one unit.

    first, gaps  the number of the first idle gap that is kept in `bounds`, and how many are
    bounds       begin and end of each idle gap before `next_free`, ascending
    next_free    the cycle at which the last of the requests booked ends
    busy_cycles  how many cycles have been booked so far
    room         how long the list `bounds` may become
    """

    first: int
    gaps: int
    bounds: Reals
    next_free: float
    busy_cycles: float
    room: Room


def book(server: Server, now: int, arrival: float, cycles: float) -> float:
    """Book a request that reaches the unit at cycle `arrival` and occupies it for `cycles`. Return when it begins.

    `now` must not lie before that of an earlier call, nor after `arrival`. Idle gaps that end by `now` are forgotten.
    """
    server.busy_cycles += cycles
    while server.gaps > 0 and server.bounds[2 * server.first + 1] <= now:
        server.first += 1
        server.gaps -= 1
    for gap in range(server.first, server.first + server.gaps):
        start, end = server.bounds[2 * gap], server.bounds[2 * gap + 1]
        begin = max(start, arrival)
        if begin + cycles <= end:
            _fill(server, gap, begin, begin + cycles)
            return begin
    begin = server.next_free
    if arrival > begin:
        _append(server, begin, arrival)
        begin = arrival
    server.next_free = begin + cycles
    return begin


def _fill(server: Server, gap: int, begin: float, end: float) -> None:
    """Take the cycles [begin, end) out of idle gap `gap`. What is left of the gap before and behind them stays."""
    left, right = server.bounds[2 * gap] < begin, end < server.bounds[2 * gap + 1]
    last = server.first + server.gaps
    if left and right:
        for i in range(2 * last - 1, 2 * gap, -1):
            server.bounds[i + 2] = server.bounds[i]
        server.bounds[2 * gap + 1] = begin
        server.bounds[2 * gap + 2] = end
        server.gaps += 1
        _keep_room(server)
    elif left:
        server.bounds[2 * gap + 1] = begin
    elif right:
        server.bounds[2 * gap] = end
    else:
        for i in range(2 * gap + 2, 2 * last):
            server.bounds[i - 2] = server.bounds[i]
        server.gaps -= 1


def _append(server: Server, begin: float, end: float) -> None:
    last = server.first + server.gaps
    server.bounds[2 * last] = begin
    server.bounds[2 * last + 1] = end
    server.gaps += 1
    _keep_room(server)


def _keep_room(server: Server) -> None:
    """Move the gaps to the front of their list where it comes to its end."""
    entries = server.room.entries
    if server.first + server.gaps + RESERVE <= entries:
        return
    if server.gaps + RESERVE > entries:
        server.room.short = 1
    for i in range(2 * server.gaps):
        server.bounds[i] = server.bounds[2 * server.first + i]
    server.first = 0
