"""`write_ports.WritePorts`, compiled: what loads return, in a ring of each sub-partition."""

from __future__ import annotations

from gemmsim.native.numba_parts import INDEX, NOTHING, subroutine
from gemmsim.sm.compiled.records import PART_TYPE, ROW_TYPE, SM_TYPE, return_at
from gemmsim.sm.write_ports import HELD_CYCLES, MOST_WAIT_CYCLES, RETURN_CYCLES, WRITE_CYCLES

# mypy: disable-error-code="no-untyped-def"


@subroutine(NOTHING, SM_TYPE, PART_TYPE, ROW_TYPE, INDEX)
def expect(sm, part, row, used):
    """`WritePorts.expect`."""
    if row.even_return + row.odd_return + row.pair_return == 0:
        return
    if part.returns_count == sm.room:
        sm.full = 1
        return
    entry = return_at(part.returns_at, (part.returns_head + part.returns_count) % sm.room)
    entry.ready = used - RETURN_CYCLES
    entry.even = row.even_return
    entry.odd = row.odd_return
    entry.pairs = row.pair_return
    part.returns_count += 1


@subroutine(INDEX, SM_TYPE, PART_TYPE, ROW_TYPE, INDEX)
def write(sm, part, row, now):
    """`WritePorts.write`."""
    at, cursor = now + WRITE_CYCLES, part.last_write + 1
    part.last_write = at
    if part.returns_count == 0:
        return 0
    for n in range(part.returns_count):
        entry = return_at(part.returns_at, (part.returns_head + n) % sm.room)
        cursor = max(cursor, entry.ready)
        room = at - cursor
        if room <= 0:
            break
        cursor += min(room, max(entry.even, entry.odd) + entry.pairs)
        both = min(room, entry.pairs)
        entry.even = max(0, entry.even - (room - both))
        entry.odd = max(0, entry.odd - (room - both))
        entry.pairs -= both
    even_free, odd_free = row.even_result + row.pair_result == 0, row.odd_result + row.pair_result == 0
    for n in range(part.returns_count):
        entry = return_at(part.returns_at, (part.returns_head + n) % sm.room)
        if entry.ready > at or not (even_free or odd_free):
            break
        if entry.pairs > 0:
            if even_free and odd_free:
                entry.pairs -= 1
                even_free, odd_free = False, False
            continue
        if even_free and entry.even > 0:
            entry.even -= 1
            even_free = False
        if odd_free and entry.odd > 0:
            entry.odd -= 1
            odd_free = False
    while part.returns_count > 0:
        entry = return_at(part.returns_at, part.returns_head)
        if entry.even + entry.odd + entry.pairs > 0:
            return HELD_CYCLES if at - entry.ready >= MOST_WAIT_CYCLES else 0
        part.returns_head = (part.returns_head + 1) % sm.room
        part.returns_count -= 1
    return 0
