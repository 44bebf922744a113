"""Finds races between blocks on global memory. Nothing orders the blocks of a launch: which runs first is not told.

Global memory has a shadow of its own, with the last write and two readers of each granule, and their blocks. Two
accesses of different blocks race where one writes, unless both are atomic or the write changes nothing. Blocks that
tell each other by atomic instructions that they are done are ordered in ways that are not followed here: programs with
such instructions are not looked at (`shadow_state`), nor are bulk copies.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u8, get_u64, moved, row_of, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report

# mypy: disable-error-code="no-untyped-def"

_WHO = (1 << shadow.CLOCK_SHIFT) - 1  # of a stamp: warp, lane, kind, instruction


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def check_between_blocks(context, registers, op, address, size, allocation, stamp):
    """Compare an access of `size` bytes to an allocation with those of other blocks, and note it."""
    block, kind = get_i64(context, words.BLOCK_NUMBER), (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK
    offset = address - get_u64(get_u64(context, words.ALLOCATION_START), allocation)
    place = np.int64(get_u64(get_u64(context, words.ALLOCATION_POSITION), allocation) + offset)
    shift, own = get_i64(context, words.BLOCKS_SHIFT), block << shadow.CLOCK_SHIFT | stamp & _WHO
    content = get_u64(get_u64(context, words.ALLOCATION_PLACE), allocation) + offset
    changes = kind != shadow.READ and not (kind == shadow.WRITTEN and _unchanged(registers, op, stamp, content, size))
    for granule in range(place >> shift, (place + size - 1 >> shift) + 1):
        entry = moved(get_u64(context, words.BLOCKS_SHADOW_AT), 8 * shadow.BLOCK_WORDS * granule)
        last, other = get_i64(entry, shadow.BLOCK_WRITE), np.int64(0)
        atomic = kind == shadow.ATOMIC and (last >> shadow.KIND_SHIFT) & shadow.KIND_MASK == shadow.ATOMIC
        if last >> shadow.CLOCK_SHIFT != block and not atomic and (kind == shadow.READ or changes):
            other = last
        if kind == shadow.READ:
            if get_i64(entry, shadow.BLOCK_READER) == 0:
                set_i64(entry, shadow.BLOCK_READER, own)
            set_i64(entry, shadow.BLOCK_LAST_READER, own)
        elif changes:
            for slot in range(shadow.BLOCK_READER, shadow.BLOCK_LAST_READER + 1):
                reader = get_i64(entry, slot)
                if other == 0 and reader >> shadow.CLOCK_SHIFT != block:
                    other = reader
            set_i64(entry, shadow.BLOCK_WRITE, own)
        if other != 0:
            report(context, shadow.BETWEEN_BLOCKS, stamp, other, np.int64(address), size)


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, ADDRESS, INDEX)
def _unchanged(registers, op, stamp, content, size):
    """Whether a lane's store writes the bytes that are there already."""
    data, lane, same = row_of(registers, op, micro.SECOND_SOURCE), (stamp >> shadow.LANE_SHIFT) & 31, True
    for byte in range(size):
        word = get_n32(data, 32 * (byte >> 2) + lane)
        same &= np.int64(get_u8(content, byte)) == (word >> 8 * (byte & 3)) & 255
    return same
