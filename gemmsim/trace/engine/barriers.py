"""Executes the block's barriers (BAR): who has arrived, when a barrier opens, and the outcome of a reduction."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.paths import add_path, go_on_unmet
from gemmsim.trace.engine.sync_trace import note_sync
from gemmsim.trace.llvm.primitives import (
    first_set,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    moved,
    population,
    row_of,
    set_i64,
    splat_row,
    true_lanes,
)

# mypy: disable-error-code="no-untyped-def"


@subroutine(NOTHING, ADDRESS, INDEX)
def release(context, number):
    """Open a barrier: all paths of warps that wait at it can run, and B2R can read the outcome of its reduction."""
    barriers = get_u64(context, words.BARRIERS_AT)
    barrier = moved(barriers, 8 * words.BARRIER_WORDS * number)
    how = get_i64(barrier, words.BARRIER_REDUCES)
    if how != micro.SYNC:
        true, arrived = get_i64(barrier, words.BARRIER_TRUE), get_i64(barrier, words.BARRIER_ARRIVED)
        set_i64(barriers, words.OUTCOME + words.OUTCOME_TRUE, true)
        holds = true == arrived if how == micro.REDUCE_AND else true != 0
        set_i64(barriers, words.OUTCOME + words.OUTCOME_HOLDS, 1 if holds else 0)
    for word in range(words.BARRIER_WORDS):
        set_i64(barrier, word, 0)
    for w in range(get_i64(context, words.WARPS)):
        warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * w)
        for i in range(get_i64(warp, words.PATH_COUNT)):
            path = moved(warp, 8 * (words.PATHS_AT + words.PATH_WORDS * i))
            if get_i64(path, words.PATH_REASON) == words.WAIT_BLOCK and get_i64(path, words.PATH_NEED) == number:
                set_i64(path, words.PATH_REASON, words.RUNNABLE)
                set_i64(warp, words.STATE, words.READY)


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, WORD)
def arrive(context, warp, registers, op, pc, mask):
    """Execute BAR for the threads in `mask`; returns whether they wait.

    Threads that wait are set aside as a path of the warp, which continues at `pc`.
    """
    lane, how = first_set(mask), get_n32(op, micro.DETAIL)
    number = get_n32(row_of(registers, op, micro.SOURCE), lane) & (words.BLOCK_BARRIERS - 1)
    expected = get_n32(row_of(registers, op, micro.SECOND_SOURCE), lane)
    barrier = moved(get_u64(context, words.BARRIERS_AT), 8 * words.BARRIER_WORDS * number)
    arrived = get_i64(barrier, words.BARRIER_ARRIVED) + population(mask)
    set_i64(barrier, words.BARRIER_ARRIVED, arrived)
    if how > micro.ARRIVE:
        holds = true_lanes(row_of(registers, op, micro.THIRD_SOURCE), get_u32(op, micro.THIRD_FLIP)) & mask
        set_i64(barrier, words.BARRIER_TRUE, get_i64(barrier, words.BARRIER_TRUE) + population(holds))
        set_i64(barrier, words.BARRIER_REDUCES, how)
    if get_u32(op, micro.IMMEDIATE) != 0:
        note_sync(context, op, number, expected, np.int64(0), np.int64(0), np.uint64(0))
    if how != micro.ARRIVE:
        add_path(warp, pc, mask, words.WAIT_BLOCK, number)
    if expected != 0 and arrived >= expected:
        release(context, number)
    return how != micro.ARRIVE


@subroutine(ADDRESS, ADDRESS)
def cluster_part(context):
    """Return the address of the words of the block's part of its cluster's barrier."""
    return moved(get_u64(context, words.BARRIERS_AT), 8 * words.BARRIER_WORDS * words.CLUSTER_BARRIER)


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, INDEX, WORD)
def meet_cluster(context, warp, op, pc, mask):
    """Execute UCGABAR_ARV or UCGABAR_WAIT for the threads in `mask`; returns whether they wait.

    Threads that wait are set aside as a path of the warp, which continues at `pc`. A thread that arrives twice without
    a wait between, or waits before it arrives, is noted; the block then stops with OUT_OF_TURN.
    """
    arrives, lanes, barrier = get_n32(op, micro.DETAIL) == micro.ARRIVE, np.int64(mask), cluster_part(context)
    arrived, due = get_i64(warp, words.CLUSTER_ARRIVED), get_i64(warp, words.CLUSTER_DUE)
    wrong = due & lanes if arrives else lanes & ~due
    if wrong != 0:
        number = (np.int64(warp) - get_i64(context, words.WARPS_AT)) // (8 * words.WARP_WORDS)
        set_i64(barrier, words.CLUSTER_MISUSED, number << 32 | get_n32(op, micro.INSTRUCTION) + 1)
    if arrives:
        set_i64(warp, words.CLUSTER_ARRIVED, arrived | lanes)
        set_i64(warp, words.CLUSTER_DUE, due | lanes)
        return False
    set_i64(warp, words.CLUSTER_DUE, due & ~lanes)
    if arrived & lanes == 0:  # the barrier has opened since
        return False
    set_i64(barrier, words.CLUSTER_WAITING, get_i64(barrier, words.CLUSTER_WAITING) + 1)
    add_path(warp, pc, mask, words.WAIT_BLOCK, words.CLUSTER_BARRIER)
    return True


@subroutine(TRUTH, ADDRESS)
def all_arrived(context):
    """Whether all threads of the block that have not ended have arrived at the cluster's barrier."""
    for w in range(get_i64(context, words.WARPS)):
        warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * w)
        if get_i64(warp, words.ALIVE) & ~get_i64(warp, words.CLUSTER_ARRIVED) != 0:
            return False
    return True


@subroutine(NOTHING, ADDRESS)
def open_cluster_part(context):
    """Open the cluster's barrier for the threads of the block."""
    for w in range(get_i64(context, words.WARPS)):
        warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * w)
        set_i64(warp, words.CLUSTER_ARRIVED, 0)
    misused = get_i64(cluster_part(context), words.CLUSTER_MISUSED)
    release(context, words.CLUSTER_BARRIER)
    set_i64(cluster_part(context), words.CLUSTER_MISUSED, misused)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD)
def read_outcome(context, registers, op, mask):
    """Execute B2R.RESULT, which reads the outcome of a barrier's reduction.

    The first result is how many threads' predicates held, the second is the reduction's outcome.
    """
    barriers = get_u64(context, words.BARRIERS_AT)
    splat_row(row_of(registers, op, micro.RESULT), get_i64(barriers, words.OUTCOME + words.OUTCOME_TRUE), mask)
    holds = -get_i64(barriers, words.OUTCOME + words.OUTCOME_HOLDS)
    splat_row(row_of(registers, op, micro.SECOND_RESULT), holds, mask)


@subroutine(INDEX, ADDRESS)
def open_complete_barriers(context):
    """Open the barriers at which every living thread has arrived. Call it when no warp can run.

    Where none is, threads at WARPSYNC may go on (`go_on_unmet`). Returns how many barriers opened; 0 where all threads
    have ended, -1 where threads wait for others that never arrive. The barrier of a cluster opens here where blocks run
    one by one: it then keeps the warps of a block in order, which is all that the program slices need that are executed
    so.
    """
    warps, alive, waiting = get_u64(context, words.WARPS_AT), np.int64(0), np.int64(0)
    for w in range(get_i64(context, words.WARPS)):
        warp = moved(warps, 8 * words.WARP_WORDS * w)
        alive += population(get_i64(warp, words.ALIVE))
        waiting += get_i64(warp, words.STATE) == words.WAITING
    if waiting == 0:
        return np.int64(0)
    opened = np.int64(0)
    for number in range(words.BLOCK_BARRIERS):
        barrier = moved(get_u64(context, words.BARRIERS_AT), 8 * words.BARRIER_WORDS * number)
        if get_i64(barrier, words.BARRIER_ARRIVED) == alive:
            release(context, number)
            opened += 1
    waiting = get_i64(cluster_part(context), words.CLUSTER_WAITING)
    if opened == 0 and waiting != 0 and get_u64(context, words.CLUSTER_AT) == np.uint64(0) and all_arrived(context):
        open_cluster_part(context)
        opened += 1
    if opened == 0:
        for w in range(get_i64(context, words.WARPS)):
            opened += go_on_unmet(moved(warps, 8 * words.WARP_WORDS * w))
        counters = get_u64(context, words.COUNTERS_AT)
        set_i64(counters, words.UNMET, get_i64(counters, words.UNMET) + opened)
    return opened if opened > 0 else np.int64(-1)
