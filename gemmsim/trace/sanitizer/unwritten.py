"""Follows words of shared memory that nobody wrote from their load to the first use of the register.

Compilers load more than the source reads: 16 bytes, of which a thread may use only some words, and which depends on the
path that it takes. A word that no instruction reads before its register is overwritten does no harm, and is not told;
so do Valgrind's memcheck and its like, which tell an uninitialised value when it is used. A use is any instruction that
a thread executes and that reads the register, a copy of it, too; of a multiplication of matrices also a register that
it only may read (`gemmsim.trace.slicing.dataflow`). The finding names the load, once, whatever uses follow.

That is so only of whether a word has been written. Bounds, alignment, races and copies that nobody waited for are
checked when the load is executed, and for all of its bytes: the hardware touches them all, and which of two threads
comes first does not depend on what becomes of the word. LDSM, whose words go to other lanes than those that give the
addresses, tells at once also what nobody wrote.

`TOUCHES_LOADED` micro-operations are those that touch a register that any such load of the program writes;
`shadow_state` marks them, and lists for each of them which registers these are.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u64, has, moved, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report
from gemmsim.trace.sanitizer.knowledge import shadow_of

# mypy: disable-error-code="no-untyped-def"

_BYTES_MASK = (1 << 32) - 1


@subroutine(ADDRESS, ADDRESS, INDEX, INDEX)
def _entry(own, register, lane):
    return moved(own, 8 * (shadow.PENDING_AT + shadow.PENDING_WORDS * (32 * register + lane)))


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def note_unwritten(context, op, stamp, address, word):
    """Note that word number `word` of what a lane loads, from `address` on, has not been written by anybody."""
    own, lane = shadow_of(context, (stamp >> shadow.WARP_SHIFT) & 31), (stamp >> shadow.LANE_SHIFT) & 31
    register = get_n32(op, micro.RESULT) // WARP_LANES + word
    if register < shadow.REGISTERS:  # else the load is to RZ
        lanes = get_i64(own, shadow.PENDING_LANES + register)
        set_i64(own, shadow.PENDING_LANES + register, lanes | np.int64(1) << lane)
        entry = _entry(own, register, lane)
        set_i64(entry, shadow.PENDING_STAMP, stamp)
        set_i64(entry, shadow.PENDING_PLACE, address << 32 | get_n32(op, micro.ACCESS) & micro.SIZE_MASK)
        set_i64(own, shadow.PENDING, 1)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX)
def note_the_same(context, op, stamp, other):
    """Note that what a lane loads has been written as little as what lane `other` loaded from the same address."""
    own = shadow_of(context, (stamp >> shadow.WARP_SHIFT) & 31)
    if get_i64(own, shadow.PENDING) != 0:
        first = get_n32(op, micro.RESULT) // WARP_LANES
        for register in range(first, first + max(1, (get_n32(op, micro.ACCESS) & micro.SIZE_MASK) >> 2)):
            if register < shadow.REGISTERS:
                lanes = get_i64(own, shadow.PENDING_LANES + register)
                if (lanes >> other) & 1 != 0:
                    address = get_i64(_entry(own, register, other), shadow.PENDING_PLACE) >> 32
                    note_unwritten(context, op, stamp, address, register - first)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, WORD)
def note_use(context, op, warp, mask):
    """Tell of a `TOUCHES_LOADED` micro-operation, which the lanes in `mask` execute next, what it reads of words that
    nobody wrote, and forget what it overwrites. Lanes in a row that loaded from one address count as one."""
    own = shadow_of(context, warp)
    if get_i64(own, shadow.PENDING) == 0:
        return
    number = np.int64(op - get_u64(context, words.CODE_AT)) // (4 * micro.COLUMNS)
    touched, left = moved(get_u64(context, words.LOADED_AT), 8 * shadow.WATCH_WORDS * number), np.int64(0)
    for register in range(shadow.REGISTERS):
        lanes = get_i64(own, shadow.PENDING_LANES + register)
        its, bit = lanes & np.int64(mask), register & 63
        reads = (get_i64(touched, shadow.WATCH_READS + (register >> 6)) >> bit) & 1
        writes = (get_i64(touched, shadow.WATCH_WRITES + (register >> 6)) >> bit) & 1
        if its != 0 and reads != 0:
            before = np.int64(-1)
            for lane in range(32):
                if has(np.uint32(its), lane):
                    entry = _entry(own, register, lane)
                    place = get_i64(entry, shadow.PENDING_PLACE)
                    if place != before:
                        stamp = get_i64(entry, shadow.PENDING_STAMP)
                        report(context, shadow.UNWRITTEN, stamp, 0, place >> 32, place & _BYTES_MASK)
                    before = place
        if reads | writes != 0:
            lanes &= ~its
            set_i64(own, shadow.PENDING_LANES + register, lanes)
        left |= lanes
    set_i64(own, shadow.PENDING, left)
