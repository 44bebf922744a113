"""Moves 8 x 8 matrices between shared memory and registers, for all lanes of a warp together: LDSM and STSM."""

from __future__ import annotations

import numpy as np

from gemmsim.isa.matrix import MATRIX_ROW_BYTES
from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.memory_access import blame, place_newest, record
from gemmsim.trace.llvm.primitives import (
    get_n32,
    get_u16,
    get_u32,
    get_u64,
    lane_address,
    moved,
    row_of,
    set_u16,
    set_u32,
)

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)


def move_matrix(context, registers, op, mask, warp):
    """Load or store 8 x 8 matrices, for each of which eight lanes hold the addresses of its rows.

    Element (r, c) is in lane 4 r + c / 2, or, where the matrix is transposed, in lane 4 c + r / 2. Returns 0 or a fault
    status.
    """
    if mask != _FULL:
        return np.int64(words.PARTIAL_WARP)
    detail = get_n32(op, micro.DETAIL)
    matrices, transposed = detail & 7, detail >> 3
    addresses = row_of(registers, op, micro.SOURCE)
    asked = np.uint32(_FULL >> np.uint32(32 - 8 * matrices))
    shape = record(context, addresses, asked, op, warp)
    limit, base = get_u64(context, words.SHARED_BYTES), get_u64(context, words.SHARED_BASE)
    low = lane_address(addresses, 0) - get_u64(shape, 0)
    last, size = low - base + get_u64(shape, words.PATTERN_HIGH), np.int64(MATRIX_ROW_BYTES)
    misaligned = get_u64(shape, words.PATTERN_ALIGNMENT) & np.uint64(15) != np.uint64(0)
    if low < base or moved(last, MATRIX_ROW_BYTES) > limit or misaligned:
        return blame(context, addresses, asked, size, base, limit, np.int64(words.SHARED_RANGE))
    place_newest(context, low - base)
    if get_n32(op, micro.ACCESS) & micro.UNMOVED_BIT != 0:
        return np.int64(0)
    shared = get_u64(context, words.SHARED_AT) - base
    if get_n32(op, micro.ACCESS) >> micro.KIND_SHIFT == micro.LOAD:
        _load(shared, addresses, row_of(registers, op, micro.RESULT), matrices, transposed)
    else:
        _store(shared, addresses, row_of(registers, op, micro.SECOND_SOURCE), matrices, transposed)
    return np.int64(0)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _load(shared, addresses, result, matrices, transposed):
    for matrix in range(matrices):
        for lane in range(32):
            high, low = lane >> 2, lane & 3
            if transposed != 0:
                first = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low))
                second = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low + 1))
                word = np.uint32(get_u16(first, high)) | np.uint32(get_u16(second, high)) << np.uint32(16)
            else:
                word = get_u32(shared + np.uint64(get_u32(addresses, 8 * matrix + high)), low)
            set_u32(result, matrix * 32 + lane, word)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _store(shared, addresses, data, matrices, transposed):
    for matrix in range(matrices):
        for lane in range(32):
            high, low = lane >> 2, lane & 3
            word = get_u32(data, matrix * 32 + lane)
            if transposed != 0:
                first = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low))
                second = shared + np.uint64(get_u32(addresses, 8 * matrix + 2 * low + 1))
                set_u16(first, high, word)
                set_u16(second, high, word >> np.uint32(16))
            else:
                set_u32(shared + np.uint64(get_u32(addresses, 8 * matrix + high)), low, word)
