"""Checks what bulk copies (TMA) read and write of shared memory."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.bulk_copies import copy_in_bulk, targets_of
from gemmsim.trace.engine.copy_plans import prepare
from gemmsim.trace.engine.plan_words import BARRIER, BYTES, PLAN_WORDS, SHARED
from gemmsim.trace.engine.watched.mbarriers import note_bytes, note_copy, note_phase, phases_at, used_at
from gemmsim.trace.llvm.primitives import first_set, get_i64, get_n32, scratch, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report, stamp_of
from gemmsim.trace.sanitizer.granules import check_asynchronous, next_serial
from gemmsim.trace.sanitizer.knowledge import clock_of, exit_of, has_ended
from gemmsim.trace.sanitizer.ordering import active_of, begin_copy

# mypy: disable-error-code="no-untyped-def"

_MOST_BLOCKS = 16  # of a cluster
_copy = subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)(copy_in_bulk)


def copy_watched(context, registers, op, mask, warp):
    """Execute a bulk copy as `copy_in_bulk` does, and check what it does to shared memory and its mbarrier, in each
    block of the cluster that gets the bytes."""
    plan, loads = scratch(PLAN_WORDS), get_n32(op, micro.DETAIL) & micro.DIRECTION_MASK == micro.COPY_LOAD
    status, own = prepare(context, registers, op, first_set(mask), plan), get_i64(context, words.SHARED_BASE)
    if status != 0:
        return status
    kind, before = np.int64(shadow.BULK_WRITE) if loads else np.int64(shadow.BULK_READ), scratch(_MOST_BLOCKS)
    stamp = stamp_of(context, clock_of(context, warp), warp, first_set(mask), kind, get_n32(op, micro.INSTRUCTION))
    targets = targets_of(context, registers, op, first_set(mask)) if loads else np.int64(0)
    for rank in range(get_i64(context, words.CLUSTER_BLOCKS)):
        base = rank << words.RANK_SHIFT
        if targets >> rank & 1 != 0 and has_ended(context, rank):
            report(
                context, shadow.ENDED, stamp, exit_of(context, rank), base + get_i64(plan, SHARED), get_i64(plan, BYTES)
            )
        elif targets >> rank & 1 != 0:
            set_i64(before, rank, phases_at(context, base + get_i64(plan, BARRIER)))
    status = _copy(context, registers, op, mask, warp)
    if status != 0:  # it may be tried again, for instance with more room: nothing is noted of it yet
        return status
    next_serial(context)
    if not loads:
        _check(context, plan, own, stamp, begin_copy(context, warp))
    for rank in range(get_i64(context, words.CLUSTER_BLOCKS)):
        if targets >> rank & 1 != 0:
            _note_load(context, plan, rank << words.RANK_SHIFT, get_i64(before, rank), stamp)
    return status


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _note_load(context, plan, base, before, stamp):
    """Check and note a load to the block whose shared memory begins at `base`, and whose mbarrier had completed so many
    phases before."""
    place, stamp_with = get_i64(plan, BARRIER), np.int64(0)
    mbarrier = used_at(context, base + place, stamp, active_of(context))
    if mbarrier >= 0:
        agent = place << shadow.WITH_ADDRESS_SHIFT | mbarrier << shadow.WITH_NUMBER_SHIFT
        stamp_with = agent | before + 1
        note_bytes(context, mbarrier, -get_i64(plan, BYTES), stamp)
        note_copy(context, mbarrier, (stamp >> shadow.WARP_SHIFT) & 31)
    _check(context, plan, base, stamp, stamp_with)
    if mbarrier >= 0:
        note_phase(context, mbarrier, base + place, before, stamp)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _check(context, plan, base, stamp, stamp_with):
    address, size = base + get_i64(plan, SHARED), get_i64(plan, BYTES)
    check_asynchronous(context, address, size, stamp, stamp_with, active_of(context))
