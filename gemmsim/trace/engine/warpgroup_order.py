"""Orders the warps of a warpgroup (wgmma): a multiplication is that of four warps, and complete for all at once.

Each warp executes its quarter when it comes to the instruction. So a warp that waits for a group waits here until the
other three have executed theirs: it may then let the operands in shared memory be overwritten. A warp that waits for
the warpgroup itself waits until the other three have arrived as often as it has.
"""

from __future__ import annotations

import numpy as np

from gemmsim.trace import micro, words
from gemmsim.trace.engine.mbarrier import note_event
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u64, moved, set_i64

# mypy: disable-error-code="no-untyped-def"

_WARPS = 4  # of a warpgroup, a power of two


def order_groups(context, registers, op, mask, number):
    """Close a group for warp `number` of the block or count its arrival, or wait until its warpgroup has closed those
    that it waits for, or has arrived as often.

    Returns 0 or WAITS.
    """
    warps = get_u64(context, words.WARPS_AT)
    own = moved(warps, 8 * words.WARP_WORDS * number)
    detail = get_n32(op, micro.DETAIL)
    counted = words.ARRIVALS if detail == micro.ARRIVE_WARP or detail == micro.AWAIT_WARPS else words.GROUPS
    count = get_i64(own, counted)
    if detail == micro.END_GROUP or detail == micro.ARRIVE_WARP:
        set_i64(own, counted, count + 1)
        note_event(context)
        return np.int64(0)
    first, due = number & -_WARPS, count - get_n32(op, micro.IMMEDIATE)
    for place in range(_WARPS):
        if first + place < get_i64(context, words.WARPS):
            warp = moved(warps, 8 * words.WARP_WORDS * (first + place))
            if get_i64(warp, counted) < due and get_i64(warp, words.STATE) != words.DONE:
                return np.int64(words.WAITS)
    return np.int64(0)
