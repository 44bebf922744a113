"""Execution pipes of a sub-partition, and the ports through which instructions reach them.

A port is what a warp must find free to issue: any one of some pipes, all of them, or an entry of the memory queue.
"""

from __future__ import annotations

from math import ceil

from gemmsim.native.records import Record, Rows
from gemmsim.sm.spec import Spec


class Pipe(Record):
    """An execution pipe of a sub-partition.

    free    the cycle from which it takes the next instruction
    issued  issue intervals that its instructions have occupied so far
    """

    free: float
    issued: float


class Port(Record):
    """A port of a sub-partition.

    pipes           how many pipes serve it: 0 for the port of the memory queue
    first, second   the numbers of these pipes, the preferred one first; -1 for none
    all             1 where an instruction takes all of them, 0 where it takes one
    free_at         first cycle at which an instruction can issue here
    blocked_cycles  cycles up to `free_at` in which nothing could issue here: the difference between two moments tells
                    how long a waiting warp was throttled, without looking at each cycle
    """

    pipes: int
    first: int
    second: int
    all: int
    free_at: int
    blocked_cycles: int


class Pipes(Record):
    """The pipes and ports of one sub-partition."""

    pipes: Rows[Pipe]
    ports: Rows[Port]
    port_count: int


def blocked_before(port: Port, cycle: int) -> int:
    """Return how many cycles before `cycle` were blocked. The last issue through the port must not lie later."""
    return port.blocked_cycles - max(0, port.free_at - cycle)


def block_until(port: Port, now: int, cycle: int) -> None:
    """Block the port, through which something issues in cycle `now`, until `cycle`."""
    if cycle > now + 1:
        port.blocked_cycles += cycle - (now + 1)
        port.free_at = cycle


def take_pipe(spec: Spec, unit: Pipes, number: int, slots: float, stretched: float, now: int) -> None:
    """Occupy a pipe of port `number`, the first that is free in cycle `now`, for `slots` of its issue intervals, which
    are `stretched` times as long as else; or all pipes of the port.
    """
    port = unit.ports[number]
    for i in range(port.pipes):
        chosen = port.first if i == 0 else port.second
        pipe = unit.pipes[chosen]
        if pipe.free > now:
            continue
        pipe.issued += slots
        cycles = spec.pipe_intervals[chosen] * slots * stretched
        # Used without a pause, a pipe with a fractional interval keeps the fraction: its average rate is exact.
        pipe.free = (pipe.free if pipe.free > now - 1 else float(now)) + cycles
        if cycles > 1:
            block_users(unit, chosen, -1, now)
        if not port.all:
            return


def block_users(unit: Pipes, chosen: int, besides: int, now: int) -> None:
    """Block the ports that pipe `chosen` serves, but for port `besides`, until one of their pipes is free."""
    for number in range(unit.port_count):
        user = unit.ports[number]
        if number != besides and user.pipes > 0 and (user.first == chosen or user.second == chosen):
            block_until(user, now, _free_at(unit, user))


def _free_at(unit: Pipes, port: Port) -> int:
    earliest = unit.pipes[port.first].free
    if port.pipes > 1:
        other = unit.pipes[port.second].free
        earliest = max(earliest, other) if port.all else min(earliest, other)
    return ceil(earliest)
