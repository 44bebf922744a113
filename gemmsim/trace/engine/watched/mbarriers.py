"""Follows mbarriers: what orders accesses at them, and whether they are used as they must be.

An arrival adds what its warp knows to what the phase's end publishes; a wait that finds the phase complete takes it
over. Checked is that

- the mbarrier is initialised, and the initialisation comes before each use;
- a thread that arrives knows that the phase before is complete: else its arrival may count in that one. This finds more
  arrivals than expected, whose surplus goes to the next phase, and producers that do not wait for consumers;
- a thread that waits has missed at most the phase that it waits for. Parities tell no more than two phases apart;
- in the end, as many bytes have come as were expected.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.mbarrier import gives_up, operate
from gemmsim.trace.llvm.primitives import (
    get_i32,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    has,
    lane_address,
    moved,
    row_of,
    set_i64,
    true_lanes,
)
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report, stamp_of
from gemmsim.trace.sanitizer.knowledge import clock_of, clocks_of, join, shadow_of, tick
from gemmsim.trace.sanitizer.ordering import active_of, meetings_of, ordered

# mypy: disable-error-code="no-untyped-def"

_operate = subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)(operate)

_IN_BLOCK = np.uint64((1 << words.RANK_SHIFT) - 1)  # the bits of an address that say where it is in a block's memory


@subroutine(INDEX, ADDRESS, INDEX)
def number_at(context, place):
    """Return the number of the mbarrier at a place in the block's shared memory, counted from 1; 0 where there is none,
    -1 where it is not followed."""
    if place < 0 or place + 8 > get_i64(context, words.SHARED_BYTES):
        return np.int64(-1)
    return get_i64(get_u64(context, words.MBARRIERS_AT), shadow.MBARRIER_NUMBERS + (place >> 3))


@subroutine(ADDRESS, ADDRESS, INDEX)
def _entry(context, number):
    at = shadow.MBARRIERS_BEGIN + shadow.MB_WORDS * (number - 1)
    return moved(get_u64(context, words.MBARRIERS_AT), 8 * at)


@subroutine(INDEX, ADDRESS, INDEX)
def phases_at(context, place):
    """Return how many phases the mbarrier at a place has completed."""
    return get_i32(get_u64(context, words.PHASES_AT), place >> 3)


@subroutine(INDEX, ADDRESS, INDEX, INDEX, WORD)
def used_at(context, place, stamp, active):
    """Check that the mbarrier at a place is initialised before its use; returns its number, 0 if it is not followed."""
    number = number_at(context, place)
    if number == 0:
        report(context, shadow.NO_MBARRIER, stamp, 0, place, 8)
    if number <= 0:
        return np.int64(0)
    entry, warp, lane = _entry(context, number), (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    made = get_i64(entry, shadow.MB_INITIALISED)
    if not ordered(context, made, get_i64(entry, shadow.MB_INITIALISED_WITH), warp, lane, active):
        report(context, shadow.UNORDERED_USE, stamp, made, place, 8)
    return number


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, WORD)
def _initialise(context, place, stamp, active):
    table, number = get_u64(context, words.MBARRIERS_AT), number_at(context, place)
    if number > 0:
        _report_bytes(context, number)
    used = get_i64(table, shadow.USED)
    if used == shadow.MAX_MBARRIERS:
        findings = get_u64(context, words.FINDINGS_AT)
        set_i64(findings, shadow.LOST, get_i64(findings, shadow.LOST) + 1)
        set_i64(table, shadow.MBARRIER_NUMBERS + (place >> 3), -1)
        return
    set_i64(table, shadow.USED, used + 1)
    set_i64(table, shadow.MBARRIER_NUMBERS + (place >> 3), used + 1)
    entry, warp = _entry(context, used + 1), (stamp >> shadow.WARP_SHIFT) & 31
    set_i64(entry, shadow.MB_ADDRESS, place)
    set_i64(entry, shadow.MB_INITIALISED, stamp)
    set_i64(entry, shadow.MB_INITIALISED_WITH, np.int64(active) << 32 | meetings_of(context, warp) & 0xFFFFFFFF)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def note_phase(context, number, place, before, stamp):
    """Publish what those know that have arrived, if what has just happened has completed a phase.

    before  phases that were complete before it
    """
    now, entry = phases_at(context, place), _entry(context, number)
    if now == before:
        return
    pending, published = moved(entry, 8 * shadow.MB_PENDING), moved(entry, 8 * shadow.MB_PUBLISHED)
    set_i64(pending, shadow.PHASES + number - 1, now)
    join(published, pending)
    set_i64(entry, shadow.MB_COMPLETED, stamp)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX)
def note_bytes(context, number, more, stamp):
    """Note that so many more bytes are expected; minus the number of bytes that have come."""
    entry = _entry(context, number)
    set_i64(entry, shadow.MB_BALANCE, get_i64(entry, shadow.MB_BALANCE) + more)
    set_i64(entry, shadow.MB_COPIED if more < 0 else shadow.MB_EXPECTED, stamp)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def _arrive(context, number, place, stamp, flags):
    """Check an arrival, and let the phase know what its warp knows."""
    entry, warp = _entry(context, number), (stamp >> shadow.WARP_SHIFT) & 31
    known, pending = clocks_of(context, warp), moved(entry, 8 * shadow.MB_PENDING)
    missed = phases_at(context, place) - get_i64(known, shadow.PHASES + number - 1)
    if missed > 0 and flags & micro.COMPLETES == 0:
        report(context, shadow.PHASE_UNSEEN, stamp, get_i64(entry, shadow.MB_COMPLETED), place, missed)
    join(pending, known)
    if flags & micro.AFTER_COPIES != 0:  # whoever sees the phase end knows that the warp's copies are complete
        copied = get_i64(shadow_of(context, warp), shadow.COPIED)
        set_i64(pending, shadow.COPIES + warp, max(copied, get_i64(pending, shadow.COPIES + warp)))
    tick(context, warp)
    set_i64(entry, shadow.MB_ARRIVED, stamp)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX)
def _see_phase(context, number, place, stamp):
    """Let a warp that has found a phase complete know what those knew that arrived."""
    entry, known = _entry(context, number), clocks_of(context, (stamp >> shadow.WARP_SHIFT) & 31)
    missed = phases_at(context, place) - get_i64(known, shadow.PHASES + number - 1)
    if missed > 1:
        report(context, shadow.PHASE_PASSED, stamp, get_i64(entry, shadow.MB_COMPLETED), place, missed)
    join(known, moved(entry, 8 * shadow.MB_PUBLISHED))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def _wait(context, registers, op, mask, stamp):
    active, rows, warp = active_of(context), row_of(registers, op, micro.SOURCE), (stamp >> shadow.WARP_SHIFT) & 31
    status = _operate(context, registers, op, mask, warp)
    found = mask if status == 0 else np.uint32(0)
    if status == words.WAITS and gives_up(context, op) != 0:
        found = mask & true_lanes(row_of(registers, op, micro.RESULT), np.uint32(0))
    before = np.int64(-1)
    for lane in range(32):
        place = np.int64(lane_address(rows, lane) & _IN_BLOCK)
        if has(mask, lane) and place != before:
            number = used_at(context, place, stamp | lane << shadow.LANE_SHIFT, active)
            if number != 0 and has(found, lane):
                _see_phase(context, number, place, stamp | lane << shadow.LANE_SHIFT)
                before = place
    return status


def operate_watched(context, registers, op, mask, warp):
    """Execute a micro-operation on mbarriers as `operate` does, and check and note what it orders."""
    kind, flags, status = get_n32(op, micro.DETAIL), get_n32(op, micro.IMMEDIATE), np.int64(0)
    active = active_of(context)
    stamp = stamp_of(clock_of(context, warp), warp, 0, np.int64(shadow.ATOMIC), get_n32(op, micro.INSTRUCTION))
    if kind >= micro.TEST:
        return _wait(context, registers, op, mask, stamp)
    rows, more, last = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.THIRD_SOURCE), np.int64(-1)
    for lane in range(32):
        if status != 0 or not has(mask, lane):
            continue
        place, its = np.int64(lane_address(rows, lane) & _IN_BLOCK), stamp | lane << shadow.LANE_SHIFT
        one, number, before = np.uint32(1) << np.uint32(lane), np.int64(0), np.int64(0)
        if kind == micro.INITIALISE:
            status = _operate(context, registers, op, one, warp)
            if status == 0 and place != last:  # several lanes of an instruction may initialise one mbarrier
                _initialise(context, place, its, active)
            last = place
            continue
        number = used_at(context, place, its, active)
        if number != 0:
            before, count = phases_at(context, place), np.int64(np.int32(get_u32(more, lane)))
            if count != 0:
                note_bytes(context, number, -count if flags & micro.COMPLETES != 0 else count, its)
            _arrive(context, number, place, its, flags)
        status = _operate(context, registers, op, one, warp)
        if number != 0 and status == 0:
            note_phase(context, number, place, before, its)
    return status


@subroutine(NOTHING, ADDRESS, INDEX)
def _report_bytes(context, number):
    """Report an mbarrier at which other bytes have come than were expected."""
    entry = _entry(context, number)
    balance, copied = get_i64(entry, shadow.MB_BALANCE), get_i64(entry, shadow.MB_COPIED)
    expected = get_i64(entry, shadow.MB_EXPECTED)
    if balance == 0:
        return
    first, other = (copied, expected) if copied != 0 else (expected, copied)
    report(context, shadow.BYTES_DIFFER, first, other, get_i64(entry, shadow.MB_ADDRESS), balance)


@subroutine(NOTHING, ADDRESS)
def note_end(context):
    """Check the mbarriers of a block that has ended or cannot go on."""
    for number in range(1, get_i64(get_u64(context, words.MBARRIERS_AT), shadow.USED) + 1):
        _report_bytes(context, number)
