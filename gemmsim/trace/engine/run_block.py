"""Holds the compiled executor of one thread block, which executes every lane of every warp, with its real addresses.

The warps run one after the other, each up to a barrier or its end (`run_warp.py`). What a warp does is appended to the
trace buffers.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.barriers import all_arrived, cluster_part, open_complete_barriers
from gemmsim.trace.engine.mbarrier import path_runner
from gemmsim.trace.engine.paths import next_path
from gemmsim.trace.engine.run_warp import warp_runner
from gemmsim.trace.engine.watched.mbarriers import note_end
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u64, moved, set_i32, set_i64
from gemmsim.trace.sanitizer.ordering import note_meeting, note_open_cluster, note_opened_barriers, publish_cluster

# mypy: disable-error-code="no-untyped-def"

# So often in a row all warps may wait at mbarriers while nothing happens. Then nothing will: after the first time, the
# waits have a time limit, so that a warp could have done something else.
_LONGEST_WAIT = 1000


@subroutine(INDEX, ADDRESS, INDEX)
def _begin_segment(context, number):
    """Note in the trace where the next segment begins. A segment is what one warp does until it ends or waits.

    Returns 0, or GROW where the buffers have no room for another segment.
    """
    counters = get_u64(context, words.COUNTERS_AT)
    segment = get_i64(counters, words.SEGMENTS)
    if segment >= get_i64(context, words.SEGMENT_LIMIT):
        return words.GROW
    set_i32(get_u64(context, words.SEGMENT_WARP_AT), segment, get_i64(counters, words.WARP_BASE) + number)
    set_i64(get_u64(context, words.SEGMENT_START_AT), segment, get_i64(counters, words.ISSUED))
    set_i64(get_u64(context, words.SEGMENT_RECORD_AT), segment, get_i64(counters, words.RECORDS))
    set_i64(counters, words.SEGMENTS, segment + 1)
    return 0


@subroutine(NOTHING, ADDRESS)
def _note_waiting(context):
    """Note one of the instructions at which threads wait, so that an error can name it."""
    counters = get_u64(context, words.COUNTERS_AT)
    for w in range(get_i64(context, words.WARPS)):
        warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * w)
        if get_i64(warp, words.PATH_COUNT) != 0:
            pc = get_i64(moved(warp, 8 * words.PATHS_AT), words.PATH_PC) - 1
            op = moved(get_u64(context, words.CODE_AT), 4 * micro.COLUMNS * pc)
            set_i64(counters, words.FAULT_INSTRUCTION, get_n32(op, micro.INSTRUCTION))
            set_i64(counters, words.FAULT_WARP, w)
            return


@subroutine(INDEX, ADDRESS, INDEX)
def _end(context, opened):
    """Return the status of a block of which no warp can run. `opened`: 0 where all have ended, -1 where some wait."""
    barrier = cluster_part(context)
    out_of_turn = get_i64(barrier, words.CLUSTER_MISUSED)
    if out_of_turn != 0:
        set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_INSTRUCTION, (out_of_turn & 0xFFFFFFFF) - 1)
        set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_WARP, out_of_turn >> 32)
        return words.OUT_OF_TURN
    if opened == 0:
        return words.FINISHED
    _note_waiting(context)
    waits_for_others = get_i64(barrier, words.CLUSTER_WAITING) != 0 and get_u64(context, words.CLUSTER_AT) != np.uint64(
        0
    )
    return words.SPINS if waits_for_others else words.DEADLOCK


@subroutine(INDEX, ADDRESS, INDEX, INDEX)
def _stop_at(barriers, number, so_far):
    """Note that the block goes on at warp `number`, and what happened in this round before; returns `number`."""
    set_i64(barriers, words.ROUND_WARP, number)
    set_i64(barriers, words.ROUND_SO_FAR, so_far)
    return number


@subroutine(TRUTH, ADDRESS)
def _meets_alone(context):
    """Whether the barrier of a cluster of one block can open."""
    waiting = get_i64(cluster_part(context), words.CLUSTER_WAITING)
    return waiting != 0 and get_u64(context, words.CLUSTER_AT) == np.uint64(0) and all_arrived(context)


def run_block_for(sanitizing: bool, relating: bool = False, interleaving: bool = False):
    """Make `run_block` of one variant, to be compiled; `executor_for` says what the first two flags mean.

    interleaving  whether the block gives way to other resident blocks (`gemmsim.trace.engine.run_residents`). Each of
                  its warps then runs until it waits, ends or gives way, before `run_block` returns.
    """
    run_paths = path_runner(warp_runner(sanitizing, relating, interleaving))

    def run_block(context):
        """Run a block until it ends or cannot go on; returns a status named in `gemmsim.trace.words`.

        context  address of the block's words, which `gemmsim.trace.words` names. After a status from which the block
                 can recover, such as GROW, another call continues where this one stopped.
        """
        barriers, rounds = get_u64(context, words.BARRIERS_AT), np.int64(0)
        first, before = get_i64(barriers, words.ROUND_WARP), get_i64(barriers, words.ROUND_SO_FAR)
        while True:
            ran, waits, gave_way = False, before & words.ROUND_WAITED != 0, before & words.ROUND_GAVE_WAY != 0
            spins = before & words.ROUND_WORKED == 0
            events = get_i64(barriers, words.EVENTS) - (before & words.ROUND_HAPPENED)
            for number in range(first, get_i64(context, words.WARPS)):
                warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * number)
                registers = moved(get_u64(context, words.REGISTERS_AT), 4 * get_i64(context, words.ROW_WORDS) * number)
                if get_i64(warp, words.STATE) != words.READY:
                    continue
                if get_i64(warp, words.ACTIVE) == 0 and not next_path(warp, registers):
                    continue
                ran, spins_before = True, spins
                if sanitizing:
                    note_meeting(context, number)
                status = _begin_segment(context, number)
                if status == 0:
                    status = run_paths(context, warp, registers, number)
                if interleaving:
                    spins &= status == words.SPINS or status == words.WAITS
                if status == words.WAITS:
                    waits, status = True, np.int64(0)
                if interleaving and (status == words.GIVES_WAY or status == words.SPINS):
                    gave_way, status = True, np.int64(0)
                if status != 0:
                    so_far = np.int64(words.ROUND_HAPPENED if events != get_i64(barriers, words.EVENTS) else 0)
                    so_far |= np.int64(words.ROUND_WAITED if waits else 0)
                    so_far |= np.int64(words.ROUND_GAVE_WAY if gave_way else 0)
                    _stop_at(barriers, number, so_far | np.int64(0 if spins_before else words.ROUND_WORKED))
                    return status
            first, before = _stop_at(barriers, np.int64(0), np.int64(0)), np.int64(0)
            still = events == get_i64(barriers, words.EVENTS)  # nothing has come for which any warp waits
            if interleaving and (gave_way or (waits and still)):
                return words.SPINS if spins and still else words.GIVES_WAY
            if not still:
                rounds = np.int64(0)
            elif waits:
                set_i64(barriers, words.TIMED_OUT, 1)
                rounds += 1
            if rounds == _LONGEST_WAIT:
                if sanitizing:
                    note_end(context)
                return words.DEADLOCK
            if not ran:
                if sanitizing and _meets_alone(context):
                    publish_cluster(context)
                    note_open_cluster(context)
                opened = open_complete_barriers(context)
                if sanitizing:
                    note_opened_barriers(context)
                if opened <= 0:
                    status = _end(context, opened)
                    if sanitizing and status != words.SPINS:
                        note_end(context)
                    return status

    return run_block
