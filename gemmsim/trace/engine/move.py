"""Moves the data of a load, store or atomic between a warp's rows and memory."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import (
    call_part,
    copy_row,
    first_set,
    get_n32,
    get_u8,
    get_u16,
    get_u32,
    has,
    lane_address,
    moved,
    row_of,
    set_u8,
    set_u16,
    set_u32,
    set_u64,
    splat_row,
)

# mypy: disable-error-code="no-untyped-def"


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS, ADDRESS, INDEX)
def move(context, registers, op, mask, rows, delta, written, shape):
    """Load, store or combine for the lanes in `mask`, whose addresses are in the two rows at `rows`.

    delta     what is added to a simulated address to get the address in this process at which its content lies
    written   what is added to the simulated address to get its byte of `DeviceMemory.written`; 0 where stores are not
              noted
    shape     PATTERN_KIND of the addresses
    """
    how = get_n32(op, micro.ACCESS)
    if how & micro.UNMOVED_BIT != 0:
        return
    size, kind = how & micro.SIZE_MASK, how >> micro.KIND_SHIFT
    stride = np.int64(words.STACK_STRIDE) if shape == words.PATTERN_STACKED else np.int64(4)
    result, data = row_of(registers, op, micro.RESULT), row_of(registers, op, micro.SECOND_SOURCE)
    if kind == micro.LOAD:
        if shape == words.PATTERN_BROADCAST and size >= 4:
            at = lane_address(rows, first_set(mask)) + delta
            for word in range(size >> 2):
                splat_row(moved(result, 128 * word), get_u32(at, word), mask)
        elif shape == words.PATTERN_ROW and size == 4:
            copy_row(result, lane_address(rows, 0) + delta, mask)
        else:
            _load(result, mask, rows, delta, stride, size, how & micro.SIGNED_BIT)
        return
    if kind == micro.ATOMIC:
        set_u64(context, words.ATOMIC_DELTA, delta)
        call_part(context, registers, op, mask, np.int64(0))
    elif shape == words.PATTERN_ROW and size == 4:
        copy_row(lane_address(rows, 0) + delta, data, mask)
    else:
        _store(data, mask, rows, delta, stride, size)
    if written != 0:
        for lane in range(32):
            if has(mask, lane):
                at = lane_address(rows, lane) + delta + written
                for byte in range(size):
                    set_u8(at, byte, 1)


@subroutine(NOTHING, ADDRESS, WORD, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _load(result, mask, rows, delta, stride, size, signed):
    for lane in range(32):
        if not has(mask, lane):
            continue
        at = lane_address(rows, lane) + delta
        if size >= 4:
            for word in range(size >> 2):
                set_u32(result, word * 32 + lane, get_u32(moved(at, word * stride), 0))
            continue
        value = np.int64(get_u16(at, 0)) if size == 2 else np.int64(get_u8(at, 0))
        top = np.int64(0x8000) if size == 2 else np.int64(0x80)
        if signed != 0:
            value = (value ^ top) - top
        set_u32(result, lane, value)


@subroutine(NOTHING, ADDRESS, WORD, ADDRESS, ADDRESS, INDEX, INDEX)
def _store(data, mask, rows, delta, stride, size):
    for lane in range(32):
        if not has(mask, lane):
            continue
        at = lane_address(rows, lane) + delta
        if size == 1:
            set_u8(at, 0, get_u32(data, lane))
        elif size == 2:
            set_u16(at, 0, get_u32(data, lane))
        for word in range(size >> 2):
            set_u32(moved(at, word * stride), 0, get_u32(data, word * 32 + lane))
