"""Operations that look across the lanes of a warp: SHFL, VOTE, MATCH, REDUX (as in the PTX ISA) and R2UR."""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import (
    equal_lanes,
    first_set,
    get_n32,
    get_u32,
    has,
    row_of,
    set_u32,
    splat_row,
    true_lanes,
)

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)


@subroutine(INDEX, ADDRESS, ADDRESS, WORD)
def exchange(registers, op, mask):
    """`registers` and `op` are addresses of the warp's rows and the micro-operation; `mask` the lanes that take part.

    Returns 0, or STALE where a lane outside of them was read that must not be.
    """
    kind = get_n32(op, micro.DETAIL)
    source, flip = row_of(registers, op, micro.SOURCE), get_u32(op, micro.SOURCE_FLIP)
    result, second = row_of(registers, op, micro.RESULT), row_of(registers, op, micro.SECOND_RESULT)
    written = _FULL if get_u32(op, micro.FLAGS) & micro.UNIFORM else mask
    if kind <= 3:
        read = _shuffle(kind, registers, op, mask, source, result, second)
        if get_u32(op, micro.ACCESS) & micro.UNMOVED_BIT != 0 and read & ~mask != 0:
            return np.int64(words.STALE)
    elif kind <= 6:
        holds = true_lanes(source, flip) & mask
        outcome = holds == mask
        if kind == 5:
            outcome = holds != 0
        elif kind == 6:
            outcome = outcome or holds == 0
        splat_row(result, holds, written)
        splat_row(second, _FULL if outcome else np.uint32(0), written)
    elif kind == 7:
        splat_row(result, get_u32(source, first_set(mask)) ^ flip, written)
    elif kind <= 9:
        rest, every = mask, mask
        while rest != 0:
            same = equal_lanes(source, get_u32(source, first_set(rest))) & mask
            every &= same
            if kind == 8:
                splat_row(result, same, same)
            rest = rest & ~same
        if kind == 9:
            splat_row(result, every if every == mask else np.uint32(0), mask)
            splat_row(second, _FULL if every == mask else np.uint32(0), mask)
    else:
        splat_row(result, _reduce(kind, source, mask), written)
    return np.int64(0)


@subroutine(WORD, INDEX, ADDRESS, WORD)
def _reduce(kind, source, mask):
    total = get_n32(source, first_set(mask))
    if kind >= 16:
        total = np.int64(np.int32(total))
    for lane in range(first_set(mask) + 1, 32):
        if has(mask, lane):
            value = get_n32(source, lane)
            if kind >= 16:
                value = np.int64(np.int32(value))
            if kind == 10:
                total += value
            elif kind == 11:
                total &= value
            elif kind == 12:
                total |= value
            elif kind == 13:
                total ^= value
            elif kind == 14 or kind == 16:
                total = min(total, value)
            else:
                total = max(total, value)
    return np.uint32(total)


@subroutine(WORD, INDEX, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS, ADDRESS)
def _shuffle(kind, registers, op, mask, source, result, second):
    """Returns the lanes that were read."""
    other, clamps = row_of(registers, op, micro.SECOND_SOURCE), row_of(registers, op, micro.THIRD_SOURCE)
    copied, inside, read = row_of(registers, op, micro.THIRD_RESULT), np.uint32(0), np.uint32(0)
    for lane in range(32):  # to a row of its own first: source and result may be one register
        b, clamp = get_n32(other, lane) & 31, get_n32(clamps, lane)
        segment, limit = (clamp >> 8) & 31, clamp & 31
        last = (lane & segment) | (limit & ~segment)
        partner = lane ^ b
        if kind == 0:
            partner = (lane & segment) | (b & ~segment)
        elif kind == 1:
            partner = lane - b
        elif kind == 2:
            partner = lane + b
        valid = partner >= last if kind == 1 else partner <= last
        set_u32(copied, lane, get_u32(source, partner if valid else lane))
        if valid and has(mask, lane):
            read |= np.uint32(1) << np.uint32(partner)
        if valid:
            inside |= np.uint32(1) << np.uint32(lane)
    for lane in range(32):
        if has(mask, lane):
            set_u32(result, lane, get_u32(copied, lane))
            set_u32(second, lane, _FULL if has(inside, lane) else np.uint32(0))
    return read
