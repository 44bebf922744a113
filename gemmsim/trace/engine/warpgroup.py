"""Multiplies the matrices of a warpgroup (wgmma): each of its four warps computes 16 of the 64 rows of the result.

Factors lie in shared memory, where a descriptor says (PTX ISA, "Asynchronous warpgroup level matrix shared memory
layout" and "Matrix descriptor format"), or A in registers. Each row of A and each column of B has 32 bytes, so that
both consist of the fragments that `gemmsim.trace.engine.multiply` describes: four registers of A for 16 rows, two of B
for eight columns.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.cut_sum import C_WORDS, add_cut, block_bytes, cut_places
from gemmsim.trace.engine.multiply import factor, load_accumulator, store_accumulator, turned_factor
from gemmsim.trace.llvm import fragments
from gemmsim.trace.llvm.primitives import (
    copy_row,
    get_i64,
    get_n32,
    get_u16,
    get_u32,
    get_u64,
    lane_address,
    moved,
    row_of,
    scratch,
    set_f64,
    set_i64,
    set_u16,
    set_u32,
    set_u64,
    true_lanes,
)
from gemmsim.trace.lower.tensor import FORMAT_MASK, FORMAT_SHIFT, HALF
from gemmsim.trace.lower.warpgroup import A_IN_REGISTERS, A_TRANSPOSED, B_TRANSPOSED
from gemmsim.trace.micro import BF16, TF32

# mypy: disable-error-code="no-untyped-def"

_FULL = np.uint32(0xFFFFFFFF)
_FOURTH_SOURCE = micro.SOURCE + 3 * micro.SOURCE_COLUMNS
_FLIP = 2  # from the column of a source to that of its xor mask
_ROW_BYTES = 128  # of a row of a warp's state


@subroutine(ADDRESS, ADDRESS, TRUTH, INDEX, INDEX)
def chunk_at(descriptor, transposed, line, chunk):
    """Return the shared address of one chunk of 16 bytes of a factor.

    descriptor  in units of 16 bytes the start (bits 0 to 13), the leading offset (from 16) and the stride offset (from
                32); the base offset (from 49), and the swizzle (62 and 63): none, 128, 64 or 32 bytes
    transposed  whether the elements of a chunk are neighbours along the rows of A or columns of B, and not along k
    line        number of the row of A or column of B; where it is transposed, k
    chunk       number of the chunk in its line

    Eight lines, each as wide as the swizzle, follow one another (16 bytes wide where there is none). To the next eight
    lines leads one offset, to the next chunks in a line beyond the width the other. Then the number of the line within
    its eight, as the address has it, is combined with that of the chunk within the width.
    """
    swizzle, field = descriptor >> np.uint64(62), np.uint64(0x3FFF)
    bits = (np.uint64(4) - swizzle) & np.uint64(3)  # of a chunk's number within the width: 8, 4 or 2 chunks, else 1
    leading, stride = descriptor >> np.uint64(16) & field, descriptor >> np.uint64(32) & field
    within = (np.uint64(1) << bits) - np.uint64(1)
    number, eight = np.uint64(chunk), np.uint64(line >> 3)
    if transposed and bits == np.uint64(0):
        leading, stride = stride, leading
    unit = (descriptor & field) + eight * stride + (number >> bits) * leading
    unit += (np.uint64(line & 7) << bits) + (number & within)
    turn = (unit >> np.uint64(3)) - (descriptor >> np.uint64(49) & np.uint64(7))
    return (unit ^ (turn & within)) << np.uint64(4)


@subroutine(ADDRESS, ADDRESS, TRUTH, INDEX, INDEX)
def fragment_chunk_at(descriptor, transposed, eight, number):
    """Return the shared address of chunk `number` (0 to 15) of eight rows of A or columns of B."""
    line, chunk = (number, eight) if transposed else (8 * eight + (number & 7), number >> 3)
    return chunk_at(descriptor, transposed, line, chunk)


@subroutine(INDEX, ADDRESS, ADDRESS, TRUTH, INDEX, ADDRESS, INDEX)
def _gather(context, descriptor, transposed, eight, to, step):
    """Write a fragment of a factor, eight rows of A or columns of B, as two registers to `to` and `step` bytes behind.

    eight  number of these eight

    Returns 0, or SHARED_RANGE where the factor is not within shared memory.
    """
    shared, limit = get_u64(context, words.SHARED_AT), get_u64(context, words.SHARED_BYTES)
    for number in range(16):
        at = fragment_chunk_at(descriptor, transposed, eight, number)
        if moved(at, 16) > limit:
            set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, 0)
            set_u64(get_u64(context, words.COUNTERS_AT), words.FAULT_ADDRESS, at)
            return np.int64(words.SHARED_RANGE)
        source, register = moved(shared, np.int64(at)), moved(to, step * (number >> 3))
        if transposed:
            for place in range(8):
                set_u16(
                    register, 2 * (4 * place + ((number & 7) >> 1)) + (number & 1), np.uint32(get_u16(source, place))
                )
        else:
            set_u64(register, 2 * (number & 7), get_u64(source, 0))
            set_u64(register, 2 * (number & 7) + 1, get_u64(source, 1))
    return np.int64(0)


@subroutine(NOTHING, ADDRESS, INDEX, WORD)
def _flip(registers, count, mask):
    """Flip these bits of the words of `count` registers."""
    if mask != 0:
        for word in range(32 * count):
            set_u32(registers, word, get_u32(registers, word) ^ mask)


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX, ADDRESS)
def _factor_a(context, registers, op, warp, to):
    """Write the four registers of the warp's 16 rows of A to the address `to`; returns 0 or a fault status."""
    detail, source, status = get_n32(op, micro.DETAIL), row_of(registers, op, micro.SOURCE), np.int64(0)
    if detail & A_IN_REGISTERS != 0:
        for register in range(4):
            copy_row(moved(to, _ROW_BYTES * register), moved(source, _ROW_BYTES * register), _FULL)
    else:
        descriptor, transposed = lane_address(source, 0), detail & A_TRANSPOSED != 0
        for half in range(2):
            if status == 0:
                place = moved(to, _ROW_BYTES * half)
                status = _gather(context, descriptor, transposed, 2 * (warp & 3) + half, place, 2 * _ROW_BYTES)
    _flip(to, 4, get_u32(op, micro.SOURCE + _FLIP))
    return status


def multiply_warpgroup(context, registers, op, mask, warp):
    """Execute a `multiply_warpgroup` for all lanes of warp number `warp` of its block; returns 0 or a fault status."""
    if mask != _FULL:
        return np.int64(words.PARTIAL_WARP)
    detail, accumulator = get_n32(op, micro.DETAIL), get_n32(op, micro.SECOND_IMMEDIATE)
    format_a, format_b = detail & FORMAT_MASK, (detail >> FORMAT_SHIFT) & FORMAT_MASK
    shift = 0 if format_a == TF32 else 1 if format_a <= BF16 else 2
    places = cut_places(detail)
    register_bytes = (np.int64(256) if places == 0 else block_bytes(format_a)) << shift  # of its elements
    accumulator_bytes = np.int64(_ROW_BYTES) if accumulator == HALF else np.int64(2 * _ROW_BYTES)
    fragment, a, b, c = scratch(4 * 16), scratch(4 * 128), scratch(2 * 128), scratch(C_WORDS)
    status = _factor_a(context, registers, op, warp, fragment)
    for register in range(4):
        factor(format_a, places, moved(a, register_bytes * register), moved(fragment, _ROW_BYTES * register))
    descriptor = lane_address(row_of(registers, op, micro.SECOND_SOURCE), 0)
    adds = true_lanes(row_of(registers, op, _FOURTH_SOURCE), get_u32(op, _FOURTH_SOURCE + _FLIP)) == _FULL
    counters = get_u64(context, words.COUNTERS_AT)
    columns = get_i64(counters, words.COLUMNS_LEFT) - get_n32(op, micro.THIRD_IMMEDIATE)
    set_i64(counters, words.COLUMNS_LEFT, columns)
    words_c, result = row_of(registers, op, micro.THIRD_SOURCE), row_of(registers, op, micro.RESULT)
    for eight in range(get_n32(op, micro.THIRD_IMMEDIATE) >> 3):
        if status == 0:
            status = _gather(context, descriptor, detail & B_TRANSPOSED != 0, eight, fragment, _ROW_BYTES)
        if status != 0:
            return status
        _flip(fragment, 2, get_u32(op, micro.SECOND_SOURCE + _FLIP))
        for register in range(2):
            turned_factor(format_b, places, moved(b, register_bytes * register), moved(fragment, _ROW_BYTES * register))
        for half in range(2):
            place = accumulator_bytes * (2 * eight + half)
            for element in range(64):
                set_f64(c, element, 0.0)
            if adds:
                load_accumulator(accumulator, c, moved(words_c, place))
            rows_a = moved(a, register_bytes * half)
            if places != 0:
                add_cut(detail, accumulator, c, rows_a, b, 2, 2 * register_bytes)
            else:
                fragments.product_4(c, rows_a, b, 2, 2 * register_bytes)
            store_accumulator(accumulator, moved(result, place), c)
    return status
