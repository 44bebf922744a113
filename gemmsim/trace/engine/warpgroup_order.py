"""Orders the warps of a warpgroup (wgmma): a multiplication is that of four warps, and complete for all at once.

Each warp executes its quarter when it comes to the instruction. So a warp that waits for a group waits here until the
other three have executed theirs: it may then let the operands in shared memory be overwritten.
"""

from __future__ import annotations

import numpy as np

from gemmsim.trace import micro, words
from gemmsim.trace.engine.mbarrier import note_event
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u64, moved, set_i64

# mypy: disable-error-code="no-untyped-def"

_WARPS = 4  # of a warpgroup, a power of two


def order_groups(context, registers, op, mask, number):
    """Close a group for warp `number` of the block, or wait until its warpgroup has closed those that it waits for.

    Returns 0 or WAITS.
    """
    warps = get_u64(context, words.WARPS_AT)
    own = moved(warps, 8 * words.WARP_WORDS * number)
    groups = get_i64(own, words.GROUPS)
    if get_n32(op, micro.DETAIL) == micro.END_GROUP:
        set_i64(own, words.GROUPS, groups + 1)
        note_event(context)
        return np.int64(0)
    first, due = number & -_WARPS, groups - get_n32(op, micro.IMMEDIATE)
    for place in range(_WARPS):
        if first + place < get_i64(context, words.WARPS):
            warp = moved(warps, 8 * words.WARP_WORDS * (first + place))
            if get_i64(warp, words.GROUPS) < due and get_i64(warp, words.STATE) != words.DONE:
                return np.int64(words.WAITS)
    return np.int64(0)
