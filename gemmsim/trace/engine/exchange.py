"""Executes operations that look across the lanes of a warp: SHFL, VOTE, MATCH, REDUX, MOVM (as in the PTX
ISA), and R2UR."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace import micro
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
_LAST_SHUFFLE, _LAST_VOTE = max(micro.SHUFFLES.values()), max(micro.VOTES.values())
_INDEX, _UP, _DOWN = (micro.SHUFFLES[name] for name in ("IDX", "UP", "DOWN"))
_ANY, _EQUAL = micro.VOTES["ANY"], micro.VOTES["EQ"]
_SUM, _AND, _OR, _XOR, _MIN, _SIGNED_MIN = (micro.REDUCTIONS[n] for n in ("SUM", "AND", "OR", "XOR", "MIN", "MIN.S32"))


def exchange(context, registers, op, mask, warp):
    """Execute an exchange among the lanes in `mask`.

    context, registers, op  addresses, as `memory_access.access` takes them

    Returns 0: it always succeeds.
    """
    kind = get_n32(op, micro.DETAIL)
    source, flip = row_of(registers, op, micro.SOURCE), get_u32(op, micro.SOURCE_FLIP)
    result, second = row_of(registers, op, micro.RESULT), row_of(registers, op, micro.SECOND_RESULT)
    written = _FULL if get_u32(op, micro.FLAGS) & micro.UNIFORM else mask
    if kind <= _LAST_SHUFFLE:
        _shuffle(kind, registers, op, mask, source, result, second)
    elif kind <= _LAST_VOTE:
        holds = true_lanes(source, flip) & mask
        outcome = holds == mask
        if kind == _ANY:
            outcome = holds != 0
        elif kind == _EQUAL:
            outcome = outcome or holds == 0
        splat_row(result, holds, written)
        splat_row(second, _FULL if outcome else np.uint32(0), written)
    elif kind == micro.FIRST_LANE:
        splat_row(result, get_u32(source, first_set(mask)) ^ flip, written)
    elif kind <= micro.MATCH_ALL:
        rest, every = mask, mask
        while rest != 0:
            same = equal_lanes(source, get_u32(source, first_set(rest))) & mask
            every &= same
            if kind == micro.MATCH_ANY:
                splat_row(result, same, same)
            rest = rest & ~same
        if kind == micro.MATCH_ALL:
            splat_row(result, every if every == mask else np.uint32(0), mask)
            splat_row(second, _FULL if every == mask else np.uint32(0), mask)
    elif kind == micro.TRANSPOSE:
        _transpose(source, result, row_of(registers, op, micro.THIRD_RESULT), mask)
    else:
        splat_row(result, _reduce(kind, source, mask), written)
    return np.int64(0)


@subroutine(WORD, INDEX, ADDRESS, WORD)
def _reduce(kind, source, mask):
    total = get_n32(source, first_set(mask))
    if kind >= _SIGNED_MIN:
        total = np.int64(np.int32(total))
    for lane in range(first_set(mask) + 1, 32):
        if has(mask, lane):
            value = get_n32(source, lane)
            if kind >= _SIGNED_MIN:
                value = np.int64(np.int32(value))
            if kind == _SUM:
                total += value
            elif kind == _AND:
                total &= value
            elif kind == _OR:
                total |= value
            elif kind == _XOR:
                total ^= value
            elif kind in (_MIN, _SIGNED_MIN):
                total = min(total, value)
            else:
                total = max(total, value)
    return np.uint32(total)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD)
def _transpose(source, result, copied, mask):
    """Transpose an 8 x 8 matrix of 16-bit elements: lane 4 r + t holds elements 2 t and 2 t + 1 of row r."""
    for lane in range(32):  # words go to the row `copied` first, because source and result may be one register
        row, first = lane >> 2, 8 * (lane & 3)
        shift = np.uint32(16 * (row & 1))
        low = (get_u32(source, first + (row >> 1)) >> shift) & np.uint32(0xFFFF)
        high = (get_u32(source, first + 4 + (row >> 1)) >> shift) & np.uint32(0xFFFF)
        set_u32(copied, lane, low | high << np.uint32(16))
    for lane in range(32):
        if has(mask, lane):
            set_u32(result, lane, get_u32(copied, lane))


@subroutine(NOTHING, INDEX, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS, ADDRESS)
def _shuffle(kind, registers, op, mask, source, result, second):
    """Copy a word from another lane to each lane in `mask`. A lane that is not in `mask` gives 0 (measured, H200)."""
    other, clamps = row_of(registers, op, micro.SECOND_SOURCE), row_of(registers, op, micro.THIRD_SOURCE)
    copied, inside = row_of(registers, op, micro.THIRD_RESULT), np.uint32(0)
    for lane in range(32):  # words go to the row `copied` first, because source and result may be one register
        b, clamp = get_n32(other, lane) & 31, get_n32(clamps, lane)
        segment, limit = (clamp >> 8) & 31, clamp & 31
        last = (lane & segment) | (limit & ~segment)
        partner = lane ^ b
        if kind == _INDEX:
            partner = (lane & segment) | (b & ~segment)
        elif kind == _UP:
            partner = lane - b
        elif kind == _DOWN:
            partner = lane + b
        valid = partner >= last if kind == _UP else partner <= last
        giver = partner if valid else lane
        set_u32(copied, lane, get_u32(source, giver) if has(mask, giver) else np.uint32(0))
        if valid:
            inside |= np.uint32(1) << np.uint32(lane)
    for lane in range(32):
        if has(mask, lane):
            set_u32(result, lane, get_u32(copied, lane))
            set_u32(second, lane, _FULL if has(inside, lane) else np.uint32(0))
