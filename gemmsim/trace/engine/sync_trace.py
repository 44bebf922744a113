"""Appends to the trace what warps do at barriers whose phase or number a program computes, and the bulk copies.

The model of time replays waits with these rows: a wait ends when all that belongs to the phase for which it waited has
happened (`gemmsim.sm.syncs`). Rows are kept where the instruction stream is.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u64, moved, set_i64, set_u64

# mypy: disable-error-code="no-untyped-def"


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, INDEX, ADDRESS)
def note_sync(context, op, barrier, phase, size, records, tensor_map):
    """Append a row, whose words `gemmsim.trace.words` names, for the micro-operation `op`.

    barrier  number of an mbarrier, its address / 8 in the cluster's window; or of a barrier of the block; or NO_BARRIER
    phase    of an mbarrier, how many of its phases had ended before the one that is meant; of a barrier of the block,
             for how many threads it waits
    tensor_map  address of the map that a copy of a tile uses, else 0
    """
    if get_i64(context, words.STREAM) == 0:
        return
    counters = get_u64(context, words.COUNTERS_AT)
    number = get_i64(counters, words.SYNCS)
    row = moved(get_u64(context, words.SYNC_AT), 8 * words.SYNC_WORDS * number)
    set_i64(row, words.SYNC_ISSUED, get_i64(counters, words.ISSUED))
    set_i64(row, words.SYNC_OF_WARP, get_i64(counters, words.SYNC_WARP))
    set_i64(row, words.SYNC_PC, get_n32(op, micro.INSTRUCTION))
    set_i64(row, words.SYNC_BARRIER, barrier)
    set_i64(row, words.SYNC_PHASE, phase)
    set_i64(row, words.SYNC_BYTES, size)
    set_i64(row, words.SYNC_RECORDS, records)
    set_u64(row, words.SYNC_MAP, tensor_map)
    set_i64(row, words.SYNC_REQUESTS, get_i64(counters, words.REQUESTS))
    set_i64(counters, words.REQUESTS, 0)
    set_i64(counters, words.SYNCS, number + 1)


@subroutine(NOTHING, ADDRESS, ADDRESS)
def note_fence(context, op):
    """Append a row for a memory fence that a thread executes."""
    note_sync(context, op, np.int64(words.NO_BARRIER), np.int64(0), np.int64(0), np.int64(0), np.uint64(0))
