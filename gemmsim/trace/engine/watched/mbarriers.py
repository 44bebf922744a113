"""Follows mbarriers: what orders accesses at them, and whether they are used as they must be.

An arrival adds what its warp knows to what the phase's end publishes; a wait that finds the phase complete takes it
over. Checked is that

- the mbarrier is initialised, and the initialisation comes before each use;
- a thread that arrives knows that the phase before is complete, or of all arrivals that completed it: else its arrival
  may count in that one. This finds more arrivals than expected, whose surplus goes to the next phase, and producers
  that do not wait for consumers;
- a thread that waits has missed at most the phase that it waits for. Parities tell no more than two phases apart;
- in the end, as many bytes have come as were expected;
- no other block of the cluster arrives when the mbarrier's block may have ended.

An mbarrier may be that of another block of the cluster. Here it has a number in the cluster, from 0 on: MAX_MBARRIERS
for each rank.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.mbarrier import gives_up, operate, phase_of
from gemmsim.trace.llvm.primitives import (
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    has,
    moved,
    row_of,
    set_i64,
    true_lanes,
)
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report, stamp_of
from gemmsim.trace.sanitizer.granules import check_visitors
from gemmsim.trace.sanitizer.knowledge import (
    clock_of,
    clock_word,
    clocks_of,
    exit_of,
    gate_of,
    has_ended,
    join,
    join_phases,
    known_to,
    mbarriers_of,
    number_of,
    phases_word,
    rank_of,
    shadow_of,
    tick,
    vector_words,
)
from gemmsim.trace.sanitizer.ordering import active_of, meetings_of, ordered

# mypy: disable-error-code="no-untyped-def"

_operate = subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)(operate)

_PLACE = (1 << words.RANK_SHIFT) - 1  # the bits of an address that say where it is in a block's memory


@subroutine(INDEX, ADDRESS, INDEX)
def _number_at(context, address):
    """Return the number in its block of the mbarrier at an address of the cluster's window, counted from 1; 0 where
    there is none, -1 where it is not followed."""
    rank, place = address >> words.RANK_SHIFT, address & _PLACE
    if rank >= get_i64(context, words.CLUSTER_BLOCKS) or place + 8 > get_i64(context, words.SHARED_BYTES):
        return np.int64(-1)
    return get_i64(mbarriers_of(context, rank), shadow.MBARRIER_NUMBERS + (place >> 3))


@subroutine(ADDRESS, ADDRESS, INDEX)
def _entry(context, mbarrier):
    table = mbarriers_of(context, mbarrier >> shadow.RANK_OF_MBARRIER)
    begin = shadow.MBARRIER_NUMBERS + (get_i64(context, words.SHARED_BYTES) >> 3)
    each = shadow.MB_VECTORS + 2 * vector_words(context)
    return moved(table, 8 * (begin + each * (mbarrier & (shadow.MAX_MBARRIERS - 1))))


@subroutine(ADDRESS, ADDRESS, ADDRESS)
def _pending(context, entry):
    """Return the vector of those that have arrived so far."""
    return moved(entry, 8 * shadow.MB_VECTORS)


@subroutine(ADDRESS, ADDRESS, ADDRESS)
def _published(context, entry):
    """Return the vector of those that had arrived when the last phase was complete."""
    return moved(entry, 8 * (shadow.MB_VECTORS + vector_words(context)))


@subroutine(INDEX, ADDRESS, INDEX)
def phases_at(context, address):
    """Return how many phases the mbarrier at an address has completed; its block must not have ended."""
    return phase_of(context, np.uint64(address))


@subroutine(INDEX, ADDRESS, INDEX, INDEX, WORD)
def used_at(context, address, stamp, active):
    """Check that the mbarrier at an address is initialised before its use; returns its number in the cluster, -1 if it
    is not followed."""
    number, rank = _number_at(context, address), address >> words.RANK_SHIFT
    if number >= 0 and has_ended(context, rank):
        report(context, shadow.ENDED, stamp, exit_of(context, rank), address, 8)
        return np.int64(-1)
    if number == 0:
        report(context, shadow.NO_MBARRIER, stamp, 0, address, 8)
    if number <= 0:
        return np.int64(-1)
    mbarrier = rank << shadow.RANK_OF_MBARRIER | number - 1
    entry, warp, lane = _entry(context, mbarrier), (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    made = get_i64(entry, shadow.MB_INITIALISED)
    if not ordered(context, made, get_i64(entry, shadow.MB_INITIALISED_WITH), warp, lane, active):
        report(context, shadow.UNORDERED_USE, stamp, made, address, 8)
    return mbarrier


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, WORD)
def _initialise(context, address, stamp, active):
    """Begin to follow an mbarrier of the block that runs."""
    table, number = get_u64(context, words.MBARRIERS_AT), _number_at(context, address)
    first, at = rank_of(context) << shadow.RANK_OF_MBARRIER, shadow.MBARRIER_NUMBERS + ((address & _PLACE) >> 3)
    if number > 0:
        _report_bytes(context, first + number - 1)
    used = get_i64(table, shadow.USED)
    if used == shadow.MAX_MBARRIERS:
        findings = get_u64(context, words.FINDINGS_AT)
        set_i64(findings, shadow.LOST, get_i64(findings, shadow.LOST) + 1)
        set_i64(table, at, -1)
        return
    set_i64(table, shadow.USED, used + 1)
    set_i64(table, at, used + 1)
    entry, warp = _entry(context, first + used), (stamp >> shadow.WARP_SHIFT) & 31
    set_i64(entry, shadow.MB_ADDRESS, address)
    set_i64(entry, shadow.MB_INITIALISED, stamp)
    set_i64(entry, shadow.MB_INITIALISED_WITH, np.int64(active) << 32 | meetings_of(context, warp) & 0xFFFFFFFF)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def note_phase(context, mbarrier, address, before, stamp):
    """Publish what those know that have arrived, if what has just happened has completed a phase.

    before  phases that were complete before it
    """
    now, entry = phases_at(context, address), _entry(context, mbarrier)
    if now == before:
        return
    set_i64(_pending(context, entry), phases_word(mbarrier), now)
    join(context, _published(context, entry), _pending(context, entry))
    set_i64(entry, shadow.MB_COMPLETED, stamp)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX)
def note_copy(context, mbarrier, warp):
    """Note that bytes come for which `warp` has asked: not before the phases that it knows to be complete."""
    join_phases(context, _pending(context, _entry(context, mbarrier)), clocks_of(context, warp))


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX)
def note_bytes(context, mbarrier, more, stamp):
    """Note that so many more bytes are expected; minus the number of bytes that have come."""
    entry = _entry(context, mbarrier)
    set_i64(entry, shadow.MB_BALANCE, get_i64(entry, shadow.MB_BALANCE) + more)
    set_i64(entry, shadow.MB_COPIED if more < 0 else shadow.MB_EXPECTED, stamp)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def _arrive(context, mbarrier, address, stamp, flags):
    """Check an arrival, and let the phase know what its warp knows."""
    entry, warp = _entry(context, mbarrier), (stamp >> shadow.WARP_SHIFT) & 31
    known, pending = clocks_of(context, warp), _pending(context, entry)
    missed = phases_at(context, address) - get_i64(known, phases_word(mbarrier))
    if missed > 0 and flags & micro.COMPLETES == 0 and not _all_known(context, entry, known):
        report(context, shadow.PHASE_UNSEEN, stamp, get_i64(entry, shadow.MB_COMPLETED), address, missed)
    join(context, pending, known)
    if flags & micro.AFTER_COPIES != 0:  # whoever sees the phase end knows that the warp's copies are complete
        copied, word = (
            get_i64(shadow_of(context, warp), shadow.COPIED),
            clock_word(shadow.COPIES, number_of(context, warp)),
        )
        set_i64(pending, word, max(copied, get_i64(pending, word)))
    tick(context, warp)
    set_i64(entry, shadow.MB_ARRIVED, stamp)


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS)
def _all_known(context, entry, known):
    """Whether all arrivals that have completed a phase come before what a vector knows, so that it knows of the phase,
    too. Where bytes come, arrivals do not say when."""
    if get_i64(entry, shadow.MB_COPIED) != 0:
        return False
    for u in range(shadow.MAX_WARPS * get_i64(context, words.CLUSTER_BLOCKS)):
        word = clock_word(shadow.CLOCK, u)
        if get_i64(_published(context, entry), word) > get_i64(known, word):
            return False
    return True


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX)
def _see_phase(context, mbarrier, address, stamp):
    """Let a warp that has found a phase complete know what those knew that arrived."""
    entry, known = _entry(context, mbarrier), clocks_of(context, (stamp >> shadow.WARP_SHIFT) & 31)
    missed = phases_at(context, address) - get_i64(known, phases_word(mbarrier))
    if missed > 1:
        report(context, shadow.PHASE_PASSED, stamp, get_i64(entry, shadow.MB_COMPLETED), address, missed)
    join(context, known, _published(context, entry))


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def _wait(context, registers, op, mask, stamp):
    active, rows, warp = active_of(context), row_of(registers, op, micro.SOURCE), (stamp >> shadow.WARP_SHIFT) & 31
    status = _operate(context, registers, op, mask, warp)
    found = mask if status == 0 else np.uint32(0)
    if status == words.WAITS and gives_up(context, op) != 0:
        found = mask & true_lanes(row_of(registers, op, micro.RESULT), np.uint32(0))
    before = np.int64(-1)
    for lane in range(32):
        address = np.int64(get_u32(rows, lane))
        if has(mask, lane) and address != before:
            mbarrier = used_at(context, address, stamp | lane << shadow.LANE_SHIFT, active)
            if mbarrier >= 0 and has(found, lane):
                _see_phase(context, mbarrier, address, stamp | lane << shadow.LANE_SHIFT)
                before = address
    return status


def operate_watched(context, registers, op, mask, warp):
    """Execute a micro-operation on mbarriers as `operate` does, and check and note what it orders."""
    kind, flags, status = get_n32(op, micro.DETAIL), get_n32(op, micro.IMMEDIATE), np.int64(0)
    active = active_of(context)
    clock, instruction = clock_of(context, warp), get_n32(op, micro.INSTRUCTION)
    stamp = stamp_of(context, clock, warp, 0, np.int64(shadow.ATOMIC), instruction)
    if kind >= micro.TEST:
        return _wait(context, registers, op, mask, stamp)
    rows, more, last = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.THIRD_SOURCE), np.int64(-1)
    for lane in range(32):
        if status != 0 or not has(mask, lane):
            continue
        address, its = np.int64(get_u32(rows, lane)), stamp | lane << shadow.LANE_SHIFT
        one, mbarrier, before = np.uint32(1) << np.uint32(lane), np.int64(-1), np.int64(0)
        if kind == micro.INITIALISE:
            status = _operate(context, registers, op, one, warp)
            if status == 0 and address != last:  # several lanes of an instruction may initialise one mbarrier
                _initialise(context, address, its, active)
            last = address
            continue
        mbarrier = used_at(context, address, its, active)
        if mbarrier >= 0:
            before, count = phases_at(context, address), np.int64(np.int32(get_u32(more, lane)))
            if count != 0:
                note_bytes(context, mbarrier, -count if flags & micro.COMPLETES != 0 else count, its)
            _arrive(context, mbarrier, address, its, flags)
        status = _operate(context, registers, op, one, warp)
        if mbarrier >= 0 and status == 0:
            note_phase(context, mbarrier, address, before, its)
    return status


@subroutine(NOTHING, ADDRESS, INDEX)
def _report_bytes(context, mbarrier):
    """Report an mbarrier at which other bytes have come than were expected."""
    entry = _entry(context, mbarrier)
    balance, copied = get_i64(entry, shadow.MB_BALANCE), get_i64(entry, shadow.MB_COPIED)
    expected = get_i64(entry, shadow.MB_EXPECTED)
    if balance == 0:
        return
    first, other = (copied, expected) if copied != 0 else (expected, copied)
    report(context, shadow.BYTES_DIFFER, first, other, get_i64(entry, shadow.MB_ADDRESS), balance)


@subroutine(NOTHING, ADDRESS)
def note_end(context):
    """Check the mbarriers of a block that has ended or cannot go on, and, in a cluster, who else uses its memory."""
    first, rank = rank_of(context) << shadow.RANK_OF_MBARRIER, rank_of(context)
    known = moved(gate_of(context, rank, np.int64(shadow.CLUSTER_PENDING)), 8 * shadow.GATE_VECTOR)
    for w in range(get_i64(context, words.WARPS)):  # who ends counts as arrived at the cluster's barrier
        join(context, known, clocks_of(context, w))
    for number in range(get_i64(get_u64(context, words.MBARRIERS_AT), shadow.USED)):
        _report_bytes(context, first + number)
        entry = _entry(context, first + number)
        arrived = get_i64(entry, shadow.MB_ARRIVED)
        if arrived >> shadow.RANK_SHIFT & shadow.RANK_MASK != rank and not known_to(known, arrived, np.int64(0)):
            report(context, shadow.ENDS, exit_of(context, rank), arrived, get_i64(entry, shadow.MB_ADDRESS), 8)
    if get_u64(context, words.CLUSTER_AT) != np.uint64(0):
        check_visitors(context, known)
