"""Register file write ports: loaded data is written in cycles in which no instruction writes its result.

Each of a sub-partition's two banks, even and odd registers, takes one register a cycle. Instructions of fixed latency
come first: what a load returns waits for cycles in which its bank is free, one a register, or one a pair for loads of
64 and 128 bits, which write both banks at once. What has waited too long holds up the issue for a few cycles.

Found on an H200 (own microbenchmark, tests/records/h200_write_ports.json): FFMAs that issue every cycle lose one
issue slot where one instruction in 8 or 16 is an LDS.128 and three where one in 32 is; they lose none to LDS and
LDS.64, and none to LDSM of four matrices, which writes single registers, where their results go to both banks in
turn. How long is waited and how long held were chosen to fit those loops, and are taken to be alike on other GPUs.
It does not explain that, where all results go to one bank, an LDSM.x4 in 8 instructions costs two slots and not one,
and an LDS in 32 costs three and not none.
"""

from __future__ import annotations

from gemmsim.native.records import Record, Rows
from gemmsim.sm.spec import Spec
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.server import RESERVE, Room


class LoadReturn(Record):
    """What a load has yet to write from cycle `ready` on: registers of one bank, or pairs that take both banks.

    cycles  for how many cycles it takes the write ports where no instruction writes
    blocks  whether the returns of other loads wait behind it
    """

    ready: int
    cycles: int
    blocks: int
    even: int
    odd: int
    pairs: int


class WritePorts(Record):
    """The write ports of one sub-partition.

    waited      for how many cycles returns have kept those of other loads waiting, since the data stage was told
    returned    the cycle by which the last of the pairs was written that a load returned
    last_write  the last cycle that has been looked at: an instruction of fixed latency writes in it
    first, count  where in `returns` the oldest entry is, and how many there are
    returns     what loads still have to write, in the order in which it is ready: a ring of as many entries as `room`
                says
    """

    last_write: int
    waited: int
    returned: int
    first: int
    count: int
    returns: Rows[LoadReturn]
    room: Room


def expect_return(spec: Spec, ports: WritePorts, row: Instruction, wavefronts: int, used: int) -> None:
    """Note what the load `row` will write. An instruction that uses it may issue in cycle `used` at the earliest."""
    if row.even_returns + row.odd_returns + row.pair_returns == 0:
        return
    entry = ports.returns[_place(ports, used - spec.load_write_to_use_cycles)]
    entry.ready = used - spec.load_write_to_use_cycles
    entry.cycles = max(row.even_returns, row.odd_returns) + row.pair_returns
    entry.blocks = row.shared_load > 0 and wavefronts <= row.pair_returns
    entry.even = row.even_returns
    entry.odd = row.odd_returns
    entry.pairs = row.pair_returns
    ports.count += 1
    if ports.count + RESERVE > ports.room.entries:
        ports.room.short = 1


def _place(ports: WritePorts, ready: int) -> int:
    """Return where in `returns` what is ready then goes: behind all that is ready before. What is ready later, as what
    has to come from L2, moves on by one."""
    entries = ports.room.entries
    n = ports.count
    while n > 0 and ports.returns[(ports.first + n - 1) % entries].ready > ready:
        later, free = ports.returns[(ports.first + n - 1) % entries], ports.returns[(ports.first + n) % entries]
        free.ready = later.ready
        free.cycles = later.cycles
        free.blocks = later.blocks
        free.even = later.even
        free.odd = later.odd
        free.pairs = later.pairs
        n -= 1
    return (ports.first + n) % entries


def write_results(spec: Spec, ports: WritePorts, row: Instruction, now: int) -> int:
    """Write the results of an instruction that issues in cycle `now`, and what loads return in the cycles up to then.
    Returns the number of cycles for which nothing may issue behind the instruction.
    """
    at, cursor = now + spec.result_write_cycles, ports.last_write + 1
    ports.last_write = at
    if ports.count == 0:
        return 0
    _write_between(spec, ports, cursor, at)
    _write_beside(spec, ports, row, at)
    while ports.count > 0:
        oldest = ports.returns[ports.first]
        if oldest.even + oldest.odd + oldest.pairs > 0:
            return spec.load_write_hold_cycles if at - oldest.ready >= spec.load_write_most_wait_cycles else 0
        ports.first = (ports.first + 1) % ports.room.entries
        ports.count -= 1
    return 0


def _note_wait(spec: Spec, ports: WritePorts, entry: LoadReturn, end: int) -> None:
    """What a load of 64 or 128 bits returns has been written by cycle `end`: note for how long it has kept others
    waiting, beyond what it takes behind the one before."""
    if entry.blocks:
        soonest = max(entry.ready, ports.returned) + entry.cycles
        ports.waited += max(0, end - soonest - spec.load_write_slack_cycles)
    ports.returned = end


def _write_between(spec: Spec, ports: WritePorts, cursor: int, at: int) -> None:
    """Let loads write in the cycles [`cursor`, `at`). No instruction may write its result in these."""
    for n in range(ports.count):
        entry = ports.returns[(ports.first + n) % ports.room.entries]
        cursor = max(cursor, entry.ready)
        free = at - cursor
        if free <= 0:
            return
        cursor += min(free, max(entry.even, entry.odd) + entry.pairs)
        both = min(free, entry.pairs)
        entry.even = max(0, entry.even - (free - both))
        entry.odd = max(0, entry.odd - (free - both))
        entry.pairs -= both
        if both > 0 and entry.pairs == 0:
            _note_wait(spec, ports, entry, cursor)


def _write_beside(spec: Spec, ports: WritePorts, row: Instruction, at: int) -> None:
    """Let loads write in cycle `at` to the banks that the result of `row`, written then, leaves free."""
    even_free, odd_free = row.even_results + row.pair_results == 0, row.odd_results + row.pair_results == 0
    for n in range(ports.count):
        entry = ports.returns[(ports.first + n) % ports.room.entries]
        if entry.ready > at or not (even_free or odd_free):
            return
        if entry.pairs > 0:
            if even_free and odd_free:
                entry.pairs -= 1
                if entry.pairs == 0:
                    _note_wait(spec, ports, entry, at + 1)
                even_free, odd_free = False, False
            continue
        if even_free and entry.even > 0:
            entry.even -= 1
            even_free = False
        if odd_free and entry.odd > 0:
            entry.odd -= 1
            odd_free = False
