"""What orders the accesses of a block: barriers, copies waited for, and threads of a warp that meet again.

Each warp has a clock of its own and knows of every other warp's up to which value it has seen it pass a barrier (vector
clocks; Flanagan and Freund, PLDI 2009, use them the same way). An access stamped (warp, clock) comes before what a warp
does now if that warp has seen the clock. A barrier hands on what all who arrive know, to all who wait.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import first_set, get_i64, get_n32, get_u64, has, moved, population, row_of, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report

# mypy: disable-error-code="no-untyped-def"

_NEVER = 1 << 62


@subroutine(ADDRESS, ADDRESS, INDEX)
def clocks_of(context, warp):
    """Address of what a warp knows of the clocks, its own among them."""
    return moved(get_u64(context, words.CLOCKS_AT), 8 * shadow.MAX_WARPS * warp)


@subroutine(ADDRESS, ADDRESS, INDEX)
def own_of(context, warp):
    """Address of the words that are kept for a warp while it is watched."""
    return moved(get_u64(context, words.WARP_WATCH_AT), 8 * shadow.WARP_WATCH_WORDS * warp)


@subroutine(INDEX, ADDRESS, INDEX, INDEX, INDEX)
def complete(context, stamp, group, warp):
    """Of a copy: 2 where it is complete before what `warp` does now; 1 where no barrier lies between its start and now,
    0 where one does (or the warp is the same), but the wait does not."""
    owner = (stamp >> shadow.WARP_SHIFT) & 31
    own, seen = own_of(context, owner), get_i64(clocks_of(context, warp), owner)
    known = group + shadow.RING > get_i64(own, shadow.GROUP)  # what the ring has forgotten is complete
    if group < get_i64(own, shadow.DONE) and (
        owner == warp or not known or get_i64(own, shadow.WAITED + group % shadow.RING) <= seen
    ):
        return np.int64(2)
    return np.int64(0) if owner == warp or stamp >> shadow.CLOCK_SHIFT <= seen else np.int64(1)


@subroutine(TRUTH, ADDRESS, INDEX, INDEX, INDEX, INDEX, WORD)
def ordered(context, stamp, beside, warp, lane, active):
    """Whether the access of that stamp comes before what a lane of `warp` does now, with the lanes `active`.

    Inside a warp program order counts where the two lanes were together at the first access, or are now, or where
    divergent paths have met since: the code of a warp that is together says nothing else (the compiler removes
    __syncwarp there), and the hardware issues it in that order. Lanes on different paths are not ordered.
    """
    owner = (stamp >> shadow.WARP_SHIFT) & 31
    if (stamp >> shadow.KIND_SHIFT) & 3 == shadow.COPY:
        return complete(context, stamp, beside, warp) == 2
    if owner != warp:
        return stamp >> shadow.CLOCK_SHIFT <= get_i64(clocks_of(context, warp), owner)
    other, own = (stamp >> shadow.LANE_SHIFT) & 31, own_of(context, warp)
    since = beside & 0xFFFFFFFF
    if get_i64(own, shadow.ALL_MET) > since or get_i64(own, shadow.MET + 32 * other + lane) > since:
        return True
    return has(beside >> 32, lane) or has(active, other)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX)
def note_copy_group(context, op, warp):
    """LDGDEPBAR closes a group of copies; DEPBAR.LE SB0, n waits until at most n groups are under way. Other
    instructions without effect are none of both."""
    own, how = own_of(context, warp), get_n32(op, micro.DETAIL)
    if how == 0:
        return
    group = get_i64(own, shadow.GROUP)
    if how == micro.COMMIT:
        set_i64(own, shadow.GROUP, group + 1)
        set_i64(own, shadow.WAITED + (group + 1) % shadow.RING, _NEVER)
        return
    now = get_i64(clocks_of(context, warp), warp)
    done = get_i64(own, shadow.DONE)
    while done < group - get_n32(op, micro.IMMEDIATE):
        set_i64(own, shadow.WAITED + done % shadow.RING, now)
        done += 1
    set_i64(own, shadow.DONE, done)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, WORD)
def note_arrival(context, state, op, warp, mask):
    """To be called before `barriers.arrive` with the same threads."""
    lane, instruction = first_set(mask), get_n32(op, micro.INSTRUCTION)
    number = get_n32(row_of(state, op, micro.SOURCE), lane) & (words.BLOCK_BARRIERS - 1)
    gate = moved(get_u64(context, words.GATES_AT), 8 * shadow.GATE_WORDS * number)
    arrived = get_i64(gate, shadow.GATE_ARRIVED)
    if arrived == 0:
        set_i64(gate, shadow.GATE_FIRST, instruction)
        set_i64(gate, shadow.GATE_WARP, warp)
        set_i64(gate, shadow.GATE_LANE, lane)
        set_i64(gate, shadow.GATE_OTHER, -1)
    elif get_i64(gate, shadow.GATE_FIRST) != instruction:
        set_i64(gate, shadow.GATE_OTHER, instruction)
        set_i64(gate, shadow.GATE_OTHER_WARP, warp)
        set_i64(gate, shadow.GATE_OTHER_LANE, lane)
    set_i64(gate, shadow.GATE_ARRIVED, arrived + population(mask))
    set_i64(gate, shadow.GATE_COUNTED, get_n32(row_of(state, op, micro.SECOND_SOURCE), lane))
    if get_n32(op, micro.DETAIL) != micro.ARRIVE:
        set_i64(gate, shadow.GATE_WAITING, get_i64(gate, shadow.GATE_WAITING) | np.int64(1) << warp)
    known = clocks_of(context, warp)
    for w in range(get_i64(context, words.WARPS)):
        set_i64(gate, shadow.GATE_CLOCKS + w, max(get_i64(gate, shadow.GATE_CLOCKS + w), get_i64(known, w)))
    set_i64(known, warp, get_i64(known, warp) + 1)


@subroutine(NOTHING, ADDRESS, INDEX)
def note_meeting(context, number):
    """To be called after `next_path`: note which lanes of the warp have met, where some did. Those that have ended
    count, too: what they did came before whatever the others do from here on."""
    warp, own = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * number), own_of(context, number)
    joins = get_i64(warp, words.JOINS)
    if get_i64(own, shadow.MET_KNOWN) == joins:
        return
    set_i64(own, shadow.MET_KNOWN, joins)
    together = (get_i64(warp, words.JOINED) | ~get_i64(warp, words.ALIVE)) & 0xFFFFFFFF
    if together == 0xFFFFFFFF:
        set_i64(own, shadow.ALL_MET, joins)
        return
    for lane in range(32):
        for other in range(32):
            if has(together, lane) and has(together, other):
                set_i64(own, shadow.MET + 32 * lane + other, joins)


@subroutine(NOTHING, ADDRESS)
def note_opened_barriers(context):
    """To be called after whatever may have opened a barrier."""
    for number in range(words.BLOCK_BARRIERS):
        gate = moved(get_u64(context, words.GATES_AT), 8 * shadow.GATE_WORDS * number)
        barrier = moved(get_u64(context, words.BARRIERS_AT), 8 * words.BARRIER_WORDS * number)
        if get_i64(gate, shadow.GATE_ARRIVED) != 0 and get_i64(barrier, words.BARRIER_ARRIVED) == 0:
            _uneven(context, gate, number)
            waiting = get_i64(gate, shadow.GATE_WAITING)
            for w in range(get_i64(context, words.WARPS)):
                if has(waiting, w):
                    known = clocks_of(context, w)
                    for u in range(get_i64(context, words.WARPS)):
                        set_i64(known, u, max(get_i64(known, u), get_i64(gate, shadow.GATE_CLOCKS + u)))
                    warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * w)
                    set_i64(warp, words.JOINS, get_i64(warp, words.JOINS) + 1)
                    set_i64(warp, words.JOINED, -1)
                    note_meeting(context, w)
            for word in range(shadow.GATE_WORDS):
                set_i64(gate, word, 0)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX)
def _uneven(context, gate, number):
    """Report a barrier that some threads of the block ended before, or that they came to at different places."""
    first, warp, lane = (
        get_i64(gate, shadow.GATE_FIRST),
        get_i64(gate, shadow.GATE_WARP),
        get_i64(gate, shadow.GATE_LANE),
    )
    if get_i64(gate, shadow.GATE_COUNTED) != 0:  # of some threads, as the code says
        return
    if get_i64(gate, shadow.GATE_OTHER) >= 0:
        other, other_warp = get_i64(gate, shadow.GATE_OTHER), get_i64(gate, shadow.GATE_OTHER_WARP)
        other_lane = get_i64(gate, shadow.GATE_OTHER_LANE)
        report(
            context,
            shadow.UNEVEN_PLACE,
            first,
            shadow.NOTHING,
            warp,
            lane,
            other,
            shadow.NOTHING,
            other_warp,
            other_lane,
            number,
            0,
        )
    if get_i64(gate, shadow.GATE_ARRIVED) >= get_i64(context, words.BLOCK_THREADS):
        return
    for w in range(get_i64(context, words.WARPS)):
        own = own_of(context, w)
        if get_i64(own, shadow.EXIT) >= 0:
            at, gone = get_i64(own, shadow.EXIT), get_i64(own, shadow.EXIT_LANE)
            report(
                context, shadow.UNEVEN_EXIT, first, shadow.NOTHING, warp, lane, at, shadow.NOTHING, w, gone, number, 0
            )
            return


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, WORD)
def note_exit(context, op, warp, mask):
    """EXIT of some threads."""
    own = own_of(context, warp)
    set_i64(own, shadow.EXIT, get_n32(op, micro.INSTRUCTION))
    set_i64(own, shadow.EXIT_LANE, first_set(mask))


@subroutine(INDEX, ADDRESS, INDEX)
def joins_of(context, warp):
    """How often divergent paths of a warp have met."""
    return get_i64(moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * warp), words.JOINS)
