"""Keeps track of what orders a block's accesses: barriers, waits for copies, and threads of a warp that meet again.

When a barrier opens, the warps that waited at it learn all that the warps which arrived at it knew (`knowledge`).
Arrivals at the barrier of a cluster all count as releases: whether one is relaxed, so that only fences before it order
anything, is not looked at. What orders accesses at mbarriers is in `gemmsim.trace.engine.watched.mbarriers`.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import first_set, get_i64, get_n32, get_u64, has, moved, population, row_of, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report, stamp_of
from gemmsim.trace.sanitizer.flights import note_warpgroup
from gemmsim.trace.sanitizer.knowledge import (
    agent_of,
    clock_word,
    clocks_of,
    fence,
    gate_of,
    join,
    known_to,
    number_of,
    rank_of,
    shadow_of,
    tick,
    vector_words,
)

# mypy: disable-error-code="no-untyped-def"

# The state of a copy, as seen by what a warp does now:
# COPY_COMPLETE    it is complete
# COPY_NOT_WAITED  nobody has waited for it, although this warp started it or a barrier lies between its start and now
# COPY_UNORDERED   another warp started it, and no barrier lies between its start and now
COPY_COMPLETE, COPY_NOT_WAITED, COPY_UNORDERED = 2, 0, 1


@subroutine(NOTHING, ADDRESS, WORD)
def note_active(context, active):
    """Note which lanes are together, for the parts that are compiled by themselves (`engine.parts`)."""
    set_i64(get_u64(context, words.FINDINGS_AT), shadow.ACTIVE, np.int64(active))


@subroutine(WORD, ADDRESS)
def active_of(context):
    """Return the lanes of the path that runs."""
    return np.uint32(get_i64(get_u64(context, words.FINDINGS_AT), shadow.ACTIVE))


@subroutine(INDEX, ADDRESS, INDEX)
def meetings_of(context, warp):
    """Return how often divergent paths of a warp have met so far."""
    return get_i64(moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * warp), words.MEETINGS)


@subroutine(INDEX, ADDRESS, INDEX, INDEX, INDEX)
def copy_state(context, stamp, stamp_with, warp):
    """Return the state (COPY_COMPLETE, ...) that the copy (cp.async) with this stamp has for what `warp` does now."""
    owner, known = (stamp >> shadow.WARP_SHIFT) & shadow.WARP_MASK, clocks_of(context, warp)
    if known_to(known, stamp, stamp_with):
        return COPY_COMPLETE
    seen = stamp >> shadow.CLOCK_SHIFT <= get_i64(known, clock_word(shadow.CLOCK, owner))
    return COPY_NOT_WAITED if owner == number_of(context, warp) or seen else COPY_UNORDERED


@subroutine(TRUTH, ADDRESS, INDEX, INDEX, INDEX, INDEX, WORD)
def ordered(context, stamp, stamp_with, warp, lane, active):
    """Whether an earlier access is ordered before what a lane of `warp` does now, on a path with the lanes `active`.

    stamp, stamp_with  the earlier access's stamp and the word beside it (see `shadow`)

    Inside a warp, program order counts where the two lanes were together at the first access, or are now, or where
    divergent paths have met since: the code of a warp that is together says nothing else (the compiler removes
    __syncwarp there), and the hardware issues it in that order. Lanes on different paths are not ordered, unless the
    warp has arrived at a barrier or an mbarrier since; which lanes did, and which waited there, is not told apart.
    """
    owner = (stamp >> shadow.WARP_SHIFT) & shadow.WARP_MASK
    if agent_of(stamp, stamp_with) >= 0 or owner != number_of(context, warp):
        return known_to(clocks_of(context, warp), stamp, stamp_with)
    other, own = (stamp >> shadow.LANE_SHIFT) & 31, shadow_of(context, warp)
    since = stamp_with & 0xFFFFFFFF
    if get_i64(own, shadow.ALL_MET) > since or get_i64(own, shadow.MET + 32 * other + lane) > since:
        return True
    if stamp >> shadow.CLOCK_SHIFT < get_i64(clocks_of(context, warp), clock_word(shadow.CLOCK, owner)):
        return True
    return has(stamp_with >> 32, lane) or has(active, other)


@subroutine(INDEX, ADDRESS, INDEX)
def begin_copy(context, warp):
    """Count one more asynchronous copy of a warp; returns how many are complete when it is."""
    own = shadow_of(context, warp)
    copied = get_i64(own, shadow.COPIED) + 1
    set_i64(own, shadow.COPIED, copied)
    return copied


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX)
def note_effect(context, op, warp):
    """Note what an instruction does that has no effect but on order; such a one says in DETAIL what it is.

    LDGDEPBAR and UTMACMDFLUSH close a group of copies, and DEPBAR.LE SB0, n waits until at most n groups are under way;
    FENCE.VIEW.ASYNC is fence.proxy.async; WARPGROUP and empty multiplications are of `flights`.
    """
    detail = get_n32(op, micro.DETAIL)
    if detail == micro.COMMIT:
        own = shadow_of(context, warp)
        groups = get_i64(own, shadow.GROUPS)
        set_i64(own, shadow.CLOSED + groups % shadow.RING, get_i64(own, shadow.COPIED))
        set_i64(own, shadow.GROUPS, groups + 1)
    elif detail == micro.WAIT:
        own, known, left = shadow_of(context, warp), clocks_of(context, warp), get_n32(op, micro.IMMEDIATE)
        done = get_i64(own, shadow.GROUPS) - left
        if done > 0 and left < shadow.RING:
            complete = get_i64(own, shadow.CLOSED + (done - 1) % shadow.RING)
            word = clock_word(shadow.COPIES, number_of(context, warp))
            set_i64(known, word, max(get_i64(known, word), complete))
    elif detail == micro.FENCE_PROXY:
        fence(context, warp)
    elif detail != 0:
        note_warpgroup(context, op, warp)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, WORD)
def note_arrival(context, registers, op, warp, mask):
    """Note which threads arrive at a barrier. Call it before `barriers.arrive` for the same threads."""
    lane = first_set(mask)
    stamp = stamp_of(context, 1, warp, lane, 0, get_n32(op, micro.INSTRUCTION))
    number = get_n32(row_of(registers, op, micro.SOURCE), lane) & (words.BLOCK_BARRIERS - 1)
    gate = gate_of(context, rank_of(context), number)
    arrived = get_i64(gate, shadow.GATE_ARRIVED)
    if arrived == 0:
        set_i64(gate, shadow.GATE_FIRST, stamp)
        set_i64(gate, shadow.GATE_OTHER, 0)
    elif (get_i64(gate, shadow.GATE_FIRST) ^ stamp) & shadow.INSTRUCTION_MASK != 0:
        set_i64(gate, shadow.GATE_OTHER, stamp)
    set_i64(gate, shadow.GATE_ARRIVED, arrived + population(mask))
    set_i64(gate, shadow.GATE_COUNTED, get_n32(row_of(registers, op, micro.SECOND_SOURCE), lane))
    if get_n32(op, micro.DETAIL) != micro.ARRIVE:
        set_i64(gate, shadow.GATE_WAITING, get_i64(gate, shadow.GATE_WAITING) | np.int64(1) << warp)
    join(context, moved(gate, 8 * shadow.GATE_VECTOR), clocks_of(context, warp))
    tick(context, warp)


@subroutine(NOTHING, ADDRESS, INDEX)
def note_meeting(context, number):
    """Note which lanes of a warp have met. Call it after `next_path` has chosen the path that runs next.

    Lanes that have ended count as met: what they did came before whatever the others do from here on.
    """
    warp, own = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * number), shadow_of(context, number)
    meetings = get_i64(warp, words.MEETINGS)
    if get_i64(own, shadow.MEETINGS_KNOWN) == meetings:
        return
    set_i64(own, shadow.MEETINGS_KNOWN, meetings)
    together = (get_i64(warp, words.LAST_MET) | ~get_i64(warp, words.ALIVE)) & 0xFFFFFFFF
    if together == 0xFFFFFFFF:
        set_i64(own, shadow.ALL_MET, meetings)
        return
    for lane in range(32):
        for other in range(32):
            if has(together, lane) and has(together, other):
                set_i64(own, shadow.MET + 32 * lane + other, meetings)


@subroutine(NOTHING, ADDRESS)
def note_opened_barriers(context):
    """Hand the clocks collected at each barrier that has opened to the warps that waited there.

    Call it after everything that may have opened a barrier.
    """
    for number in range(words.BLOCK_BARRIERS):
        gate = gate_of(context, rank_of(context), number)
        barrier = moved(get_u64(context, words.BARRIERS_AT), 8 * words.BARRIER_WORDS * number)
        if get_i64(gate, shadow.GATE_ARRIVED) != 0 and get_i64(barrier, words.BARRIER_ARRIVED) == 0:
            _report_uneven(context, gate, number)
            waiting = get_i64(gate, shadow.GATE_WAITING)
            for w in range(get_i64(context, words.WARPS)):
                if has(waiting, w):
                    _learn(context, w, gate)
            for word in range(shadow.GATE_VECTOR + vector_words(context)):
                set_i64(gate, word, 0)


@subroutine(NOTHING, ADDRESS, INDEX, ADDRESS)
def _learn(context, number, gate):
    """Let a warp know what those knew that arrived at a barrier, at which all of its lanes were."""
    join(context, clocks_of(context, number), moved(gate, 8 * shadow.GATE_VECTOR))
    warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * number)
    set_i64(warp, words.MEETINGS, get_i64(warp, words.MEETINGS) + 1)
    set_i64(warp, words.LAST_MET, -1)
    note_meeting(context, number)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, WORD)
def note_at_cluster(context, op, warp, mask):
    """Note which threads arrive at the cluster's barrier, and which come to wait at it when it has opened since.

    Call it before `barriers.meet_cluster` for the same threads.
    """
    known, rank = clocks_of(context, warp), rank_of(context)
    if get_n32(op, micro.DETAIL) == micro.ARRIVE:
        join(context, moved(gate_of(context, rank, shadow.CLUSTER_PENDING), 8 * shadow.GATE_VECTOR), known)
        tick(context, warp)
        return
    state = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * warp)
    if get_i64(state, words.CLUSTER_ARRIVED) & np.int64(mask) == 0:
        join(context, known, moved(gate_of(context, rank, shadow.CLUSTER_PUBLISHED), 8 * shadow.GATE_VECTOR))


@subroutine(NOTHING, ADDRESS)
def publish_cluster(context):
    """Hand the clocks collected at the cluster's barrier, which opens, to all of its blocks."""
    blocks = get_i64(context, words.CLUSTER_BLOCKS)
    for number in range(blocks * blocks):
        published = gate_of(context, number // blocks, shadow.CLUSTER_PUBLISHED)
        pending = gate_of(context, number % blocks, shadow.CLUSTER_PENDING)
        join(context, moved(published, 8 * shadow.GATE_VECTOR), moved(pending, 8 * shadow.GATE_VECTOR))
    for rank in range(blocks):
        pending = moved(gate_of(context, rank, shadow.CLUSTER_PENDING), 8 * shadow.GATE_VECTOR)
        for word in range(vector_words(context)):
            set_i64(pending, word, 0)


@subroutine(NOTHING, ADDRESS)
def note_open_cluster(context):
    """Hand them on to the warps of the block that wait. Call it before `barriers.open_cluster_part`."""
    gate = gate_of(context, rank_of(context), shadow.CLUSTER_PUBLISHED)
    for w in range(get_i64(context, words.WARPS)):
        warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * w)
        if get_i64(warp, words.CLUSTER_ARRIVED) & ~get_i64(warp, words.CLUSTER_DUE) & get_i64(warp, words.ALIVE) != 0:
            _learn(context, w, gate)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX)
def _report_uneven(context, gate, number):
    """Report a barrier of the whole block that some threads never reached, because they had ended.

    A barrier at which threads arrived from different instructions is reported, too; and one of a number of threads that
    has opened before so many arrived, because none were left to come. Of a warp that goes on, lanes that have ended
    count as arrived there.
    """
    first, other = get_i64(gate, shadow.GATE_FIRST), get_i64(gate, shadow.GATE_OTHER)
    expected = get_i64(gate, shadow.GATE_COUNTED)
    if expected != 0:  # the code says that it is a barrier of some threads only
        arrived = get_i64(gate, shadow.GATE_ARRIVED)
        for w in range(get_i64(context, words.WARPS)):
            alive = get_i64(moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * w), words.ALIVE)
            arrived += 32 - population(alive) if alive != 0 else np.int64(0)
        if arrived < expected:
            report(context, shadow.UNEVEN_COUNT, first, 0, number, 0)
        return
    if other != 0:
        report(context, shadow.UNEVEN_PLACE, first, other, number, 0)
    if get_i64(gate, shadow.GATE_ARRIVED) >= get_i64(context, words.BLOCK_THREADS):
        return
    for w in range(get_i64(context, words.WARPS)):
        ended = get_i64(shadow_of(context, w), shadow.EXIT)
        if ended != 0:
            report(context, shadow.UNEVEN_EXIT, first, ended, number, 0)
            return


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, WORD)
def note_exit(context, op, warp, mask):
    """Note the instruction at which the threads in `mask` end."""
    stamp = stamp_of(context, 1, warp, first_set(mask), 0, get_n32(op, micro.INSTRUCTION))
    set_i64(shadow_of(context, warp), shadow.EXIT, stamp)
