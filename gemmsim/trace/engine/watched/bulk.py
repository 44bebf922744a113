"""Checks what bulk copies (TMA) read and write of shared memory."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace import micro
from gemmsim.trace.engine.bulk_copies import copy_in_bulk
from gemmsim.trace.engine.copy_plans import BARRIER, BYTES, PLAN_WORDS, SHARED, prepare
from gemmsim.trace.engine.watched.mbarriers import note_bytes, note_phase, phases_at, used_at
from gemmsim.trace.llvm.primitives import first_set, get_i64, get_n32, scratch
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import stamp_of
from gemmsim.trace.sanitizer.granules import check_asynchronous, next_serial
from gemmsim.trace.sanitizer.knowledge import clock_of
from gemmsim.trace.sanitizer.ordering import active_of, begin_copy

# mypy: disable-error-code="no-untyped-def"

_copy = subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)(copy_in_bulk)


def copy_watched(context, registers, op, mask, warp):
    """Execute a bulk copy as `copy_in_bulk` does, and check what it does to shared memory and its mbarrier."""
    plan, loads = scratch(PLAN_WORDS), get_n32(op, micro.DETAIL) & micro.DIRECTION_MASK == micro.COPY_LOAD
    status = prepare(context, registers, op, first_set(mask), plan)
    if status != 0:
        return status
    kind = np.int64(shadow.BULK_WRITE) if loads else np.int64(shadow.BULK_READ)
    stamp = stamp_of(clock_of(context, warp), warp, first_set(mask), kind, get_n32(op, micro.INSTRUCTION))
    barrier, before = get_i64(plan, BARRIER), np.int64(0)
    if loads:
        before = phases_at(context, barrier)
    status = _copy(context, registers, op, mask, warp)
    if status != 0:  # it may be tried again, for instance with more room: nothing is noted of it yet
        return status
    next_serial(context)
    if not loads:
        _check(context, plan, stamp, begin_copy(context, warp))
        return status
    number, stamp_with = used_at(context, barrier, stamp, active_of(context)), np.int64(0)
    if number != 0:
        agent = barrier << shadow.WITH_ADDRESS_SHIFT | number - 1 << shadow.WITH_NUMBER_SHIFT
        stamp_with = agent | before + 1
        note_bytes(context, number, -get_i64(plan, BYTES), stamp)
    _check(context, plan, stamp, stamp_with)
    if number != 0:
        note_phase(context, number, barrier, before, stamp)
    return status


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX)
def _check(context, plan, stamp, stamp_with):
    place, size = get_i64(plan, SHARED), get_i64(plan, BYTES)
    check_asynchronous(context, place, size, stamp, stamp_with, active_of(context))
