"""Holds the compiled loop that runs resident blocks interleaved: which of them runs next, and what it leaves behind.

Each block has a clock, which counts the warp instructions that it has executed. The block with the lowest clock runs
next, until it ends or gives way; of blocks with equal clocks, the one that has not run for longest. A block that spins
runs again when no other block is behind it, and where all of them spin, they take turns. So the order depends on the
program and its data only.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import words
from gemmsim.trace.engine.barriers import all_arrived, open_cluster_part
from gemmsim.trace.engine.run_block import run_block_for
from gemmsim.trace.llvm.primitives import get_i64, get_u64, moved, set_i64, set_u64
from gemmsim.trace.sanitizer.ordering import note_open_cluster, publish_cluster

# mypy: disable-error-code="no-untyped-def"

_LATEST = (1 << 63) - 1


@subroutine(ADDRESS, ADDRESS, INDEX)
def _resident(context, number):
    return moved(get_u64(context, words.RESIDENTS_AT), 8 * words.RESIDENT_WORDS * number)


@subroutine(INDEX, ADDRESS, INDEX)
def _first(context, spinning):
    """Return the number of the block with the lowest clock, of those that spin or of those that do not; -1 without any.

    spinning  0: blocks that do not spin; 1: blocks that spin; 2: blocks that spin, regardless of their clocks
    """
    found, clock, turn = np.int64(-1), np.int64(_LATEST), np.int64(_LATEST)
    for number in range(get_i64(context, words.RESIDENTS)):
        block = _resident(context, number)
        if get_i64(block, words.LIVE) == 0 or (get_i64(block, words.SPINNING) != 0) != (spinning != 0):
            continue
        its_clock = np.int64(0) if spinning == 2 else get_i64(block, words.CLOCK)
        its_turn = get_i64(block, words.LAST_TURN)
        if its_clock < clock or (its_clock == clock and its_turn < turn):
            found, clock, turn = np.int64(number), its_clock, its_turn
    return found


@subroutine(INDEX, ADDRESS)
def _next(context):
    """Return the number of the resident block that runs next."""
    busy, waiting = _first(context, 0), _first(context, 1)
    if busy < 0:
        return _first(context, 2)
    if waiting < 0:
        return busy
    one, other = _resident(context, waiting), _resident(context, busy)
    ahead = get_i64(one, words.CLOCK) - get_i64(other, words.CLOCK)
    if ahead < 0 or (ahead == 0 and get_i64(one, words.LAST_TURN) < get_i64(other, words.LAST_TURN)):
        return waiting
    return busy


@subroutine(NOTHING, ADDRESS, ADDRESS)
def _load(context, block):
    """Write the words of a resident block into the context, so that `run_block` runs this block."""
    counters = get_u64(context, words.COUNTERS_AT)
    set_i64(counters, words.WARP_BASE, get_i64(block, words.RESIDENT_WARP_BASE))
    word = np.int64(words.STATE_WORDS)
    for slot in words.STATE_CONTEXT:
        set_u64(context, slot, get_u64(block, word))
        word += 1


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX)
def _end_turn(context, block, status):
    """Note that a block has given way, with this status."""
    counters, spins = get_u64(context, words.COUNTERS_AT), status == words.SPINS
    if spins:
        set_i64(block, words.SPINNING, 1)
        busy = _first(context, 0)
        if busy >= 0:
            behind = get_i64(_resident(context, busy), words.CLOCK)
            set_i64(block, words.CLOCK, max(get_i64(block, words.CLOCK), behind))
        set_i64(block, words.SPIN_WARP, get_i64(counters, words.FAULT_WARP))
        set_i64(context, words.SPINS_IN_A_ROW, get_i64(context, words.SPINS_IN_A_ROW) + 1)
    else:
        set_i64(block, words.SPINNING, 0)
        set_i64(context, words.SPINS_IN_A_ROW, 0)
    set_i64(context, words.TURNS, get_i64(context, words.TURNS) + 1)
    set_i64(block, words.LAST_TURN, get_i64(context, words.TURNS))
    set_i64(context, words.CURRENT, -1)


def _cluster_opener(sanitizing: bool):
    @subroutine(TRUTH, ADDRESS, INDEX)
    def open_cluster(context, number):
        """Open the barrier of the cluster of resident block `number` if all of its threads that live have arrived.

        The blocks of a cluster are neighbours. The context is then that of any of them.
        """
        size = get_i64(context, words.CLUSTER_BLOCKS)
        first = number - number % size
        for n in range(first, first + size):
            block = _resident(context, n)
            if get_i64(block, words.LIVE) != 0:
                _load(context, block)
                if not all_arrived(context):
                    return False
        if sanitizing:
            publish_cluster(context)
        for n in range(first, first + size):
            block = _resident(context, n)
            if get_i64(block, words.LIVE) != 0:
                _load(context, block)
                if sanitizing:
                    note_open_cluster(context)
                open_cluster_part(context)
        return True

    return open_cluster


def run_residents_for(sanitizing: bool):
    """Make `run_residents` of one variant, to be compiled (see `gemmsim.trace.engine.variants`)."""
    open_cluster = _cluster_opener(sanitizing)
    run_block = subroutine(INDEX, ADDRESS)(run_block_for(sanitizing, relating=False, interleaving=True))

    def run_residents(context):
        """Run resident blocks in turn until one of them ends or cannot go on; returns its status.

        CURRENT is then the block's number. SPINS means that all blocks have done nothing but spin for SPIN_LIMIT turns.
        The sanitizing variant returns GIVES_WAY or SPINS after each turn, so that findings can be told apart by block.
        Another call continues where this one stopped: with block CURRENT, or where that is -1 with the block that is
        next. At least one resident block must be LIVE.
        """
        counters = get_u64(context, words.COUNTERS_AT)
        while True:
            number = get_i64(context, words.CURRENT)
            if number < 0:
                number = _next(context)
                set_i64(context, words.CURRENT, number)
            block = _resident(context, number)
            _load(context, block)
            budget = get_i64(counters, words.BUDGET_LEFT)
            status = run_block(context)
            spun, spins = get_i64(block, words.SPINNING) != 0, status == words.SPINS
            clock = get_i64(block, words.CLOCK)
            if spun and not spins:  # what it waited for has come with the turn that ended last
                clock = max(clock, get_i64(context, words.NOW))
            clock += budget - get_i64(counters, words.BUDGET_LEFT)
            set_i64(block, words.CLOCK, clock)
            if not spun:
                set_i64(context, words.NOW, clock)
            opened = get_u64(context, words.CLUSTER_AT) != np.uint64(0) and open_cluster(context, number)
            if not spins and status != words.GIVES_WAY:
                return status
            _end_turn(context, block, status)
            if opened:
                set_i64(context, words.SPINS_IN_A_ROW, 0)
            if sanitizing:
                return status
            if get_i64(context, words.SPINS_IN_A_ROW) >= get_i64(context, words.SPIN_LIMIT):
                return np.int64(words.SPINS)

    return run_residents
