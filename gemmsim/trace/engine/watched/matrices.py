"""Checks what wgmma reads of shared memory."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.warpgroup import fragment_chunk_at, multiply_warpgroup
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u64, lane_address, moved, row_of
from gemmsim.trace.lower.warpgroup import A_IN_REGISTERS, A_TRANSPOSED, B_TRANSPOSED, CLOSES_GROUP
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import stamp_of
from gemmsim.trace.sanitizer.flights import begin_flight, close_group
from gemmsim.trace.sanitizer.granules import check_asynchronous, next_serial
from gemmsim.trace.sanitizer.knowledge import clock_of, shadow_of

# mypy: disable-error-code="no-untyped-def"

_CHUNK_BYTES = 16
_FULL = np.uint32(0xFFFFFFFF)
_multiply = subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)(multiply_warpgroup)


@subroutine(NOTHING, ADDRESS, ADDRESS, TRUTH, INDEX, INDEX, INDEX)
def _check_fragment(context, descriptor, transposed, eight, stamp, stamp_with):
    """Check what is read for eight rows of A or columns of B. What is outside of shared memory the executor refuses."""
    for number in range(16):
        at = fragment_chunk_at(descriptor, transposed, eight, number)
        if moved(at, _CHUNK_BYTES) <= get_u64(context, words.OWN_SHARED_BYTES):
            address = get_i64(context, words.SHARED_BASE) + np.int64(at)
            check_asynchronous(context, address, np.int64(_CHUNK_BYTES), stamp, stamp_with, _FULL)


def multiply_watched(context, registers, op, mask, warp):
    """Check a warp's quarter of a multiplication, note that it is under way, and execute it."""
    if mask == _FULL:
        _check(context, registers, op, warp)
    return _multiply(context, registers, op, mask, warp)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX)
def _check(context, registers, op, warp):
    own, detail = shadow_of(context, warp), get_n32(op, micro.DETAIL)
    kind, stamp_with = np.int64(shadow.MATRIX_READ), get_i64(own, shadow.MULTIPLIED) + 1
    stamp = stamp_of(context, clock_of(context, warp), warp, 0, kind, get_n32(op, micro.INSTRUCTION))
    begin_flight(context, op, warp, stamp)
    next_serial(context)
    if detail & A_IN_REGISTERS == 0:
        a, turned = lane_address(row_of(registers, op, micro.SOURCE), 0), detail & A_TRANSPOSED != 0
        for half in range(2):
            _check_fragment(context, a, turned, 2 * (warp & 3) + half, stamp, stamp_with)
    b, turned = lane_address(row_of(registers, op, micro.SECOND_SOURCE), 0), detail & B_TRANSPOSED != 0
    for eight in range(get_n32(op, micro.THIRD_IMMEDIATE) >> 3):
        _check_fragment(context, b, turned, eight, stamp, stamp_with)
    if detail & CLOSES_GROUP != 0:
        close_group(context, warp)
