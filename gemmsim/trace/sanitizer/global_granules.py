"""Finds races on global memory: between blocks, and between the threads of a block.

Global memory has a shadow of its own, with the last write and some readers of each granule (`shadow`). Nothing orders
the blocks of a launch: which runs first is not told. Two accesses of different blocks race where one writes, unless
both are atomic or the write changes nothing. Accesses of one block are ordered as those to shared memory are
(`ordering.ordered`); of its readers one is remembered between two barriers, so that a race of one more reader with a
warp that goes on before the others can be missed. Threads that tell each other by atomic instructions that they are
done are ordered in ways that are not followed here: programs with such instructions are not looked at
(`shadow_state`), nor are bulk copies.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u8, get_u32, get_u64, moved, row_of, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report
from gemmsim.trace.sanitizer.ordering import meetings_of, ordered

# mypy: disable-error-code="no-untyped-def"

_WHO = (1 << shadow.CLOCK_SHIFT) - 1  # of a stamp: warp, lane, kind, instruction


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, WORD)
def check_global(context, registers, op, address, size, allocation, stamp, active):
    """Compare a lane's access of `size` bytes to an allocation with those before, and note it."""
    kind = (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK
    offset = address - get_u64(get_u64(context, words.ALLOCATION_START), allocation)
    place = np.int64(get_u64(get_u64(context, words.ALLOCATION_POSITION), allocation) + offset)
    shift = get_i64(context, words.BLOCKS_SHIFT)
    content = get_u64(get_u64(context, words.ALLOCATION_PLACE), allocation) + offset
    changes = kind != shadow.READ and not (kind == shadow.WRITTEN and _unchanged(registers, op, stamp, content, size))
    for granule in range(place >> shift, (place + size - 1 >> shift) + 1):
        entry = moved(get_u64(context, words.BLOCKS_SHADOW_AT), 8 * shadow.BLOCK_WORDS * granule)
        other = _of_other_block(context, entry, stamp, changes)
        if other != 0:
            report(context, shadow.BETWEEN_BLOCKS, stamp, other, np.int64(address), size)
        else:
            other = _of_own_block(context, registers, op, entry, stamp, active)
            if other != 0 and (kind == shadow.READ or changes):
                report(context, shadow.WITHIN_BLOCK, stamp, other, np.int64(address), size)
        if kind == shadow.READ or changes:
            _note(context, entry, stamp, active)


@subroutine(INDEX, ADDRESS, ADDRESS, INDEX, TRUTH)
def _of_other_block(context, entry, stamp, changes):
    """Return the stamp of another block's access with which one races, 0 where there is none."""
    block, kind = get_i64(context, words.BLOCK_NUMBER), (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK
    last, other = get_i64(entry, shadow.BLOCK_WRITE), np.int64(0)
    atomic = kind == shadow.ATOMIC and (last >> shadow.KIND_SHIFT) & shadow.KIND_MASK == shadow.ATOMIC
    if last != 0 and last >> shadow.CLOCK_SHIFT != block and not atomic and (kind == shadow.READ or changes):
        other = last
    if changes:
        for slot in range(shadow.BLOCK_READER, shadow.BLOCK_LAST_READER + 1):
            reader = get_i64(entry, slot)
            if other == 0 and reader != 0 and reader >> shadow.CLOCK_SHIFT != block:
                other = reader
    return other


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, WORD)
def _of_own_block(context, registers, op, entry, stamp, active):
    """Return the stamp of an access of the same block with which one is not ordered, 0 where there is none.

    Lanes of one store that write different values to one place are not ordered either.
    """
    block, kind = get_i64(context, words.BLOCK_NUMBER), (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK
    warp, lane = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    if get_i64(entry, shadow.BLOCK_WRITE) >> shadow.CLOCK_SHIFT == block:
        last, serial = get_i64(entry, shadow.OWN_WRITE), get_i64(get_u64(context, words.FINDINGS_AT), shadow.SERIAL)
        last_kind = (last >> shadow.KIND_SHIFT) & shadow.KIND_MASK
        if kind == shadow.WRITTEN and last_kind == kind and get_i64(entry, shadow.OWN_WRITE_SERIAL) == serial:
            return last if not _same_data(registers, op, stamp, last) else np.int64(0)
        atomic = kind == shadow.ATOMIC and last_kind == kind
        if not atomic and not ordered(context, last, get_i64(entry, shadow.OWN_WRITE_WITH), warp, lane, active):
            return last
    reader = get_i64(entry, shadow.OWN_READER)
    if kind == shadow.READ or get_i64(entry, shadow.BLOCK_LAST_READER) >> shadow.CLOCK_SHIFT != block:
        return np.int64(0)
    if ordered(context, reader, get_i64(entry, shadow.OWN_READER_WITH), warp, lane, active):
        return np.int64(0)
    return reader


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, WORD)
def _note(context, entry, stamp, active):
    """Note a read, or a write that changes something."""
    block, kind = get_i64(context, words.BLOCK_NUMBER), (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK
    warp, lane = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    of_block = block << shadow.CLOCK_SHIFT | stamp & _WHO
    stamp_with = np.int64(active) << 32 | meetings_of(context, warp) & 0xFFFFFFFF
    if kind != shadow.READ:
        set_i64(entry, shadow.BLOCK_WRITE, of_block)
        set_i64(entry, shadow.OWN_WRITE, stamp)
        set_i64(entry, shadow.OWN_WRITE_WITH, stamp_with)
        set_i64(entry, shadow.OWN_WRITE_SERIAL, get_i64(get_u64(context, words.FINDINGS_AT), shadow.SERIAL))
        return
    reader, stays = (
        get_i64(entry, shadow.OWN_READER),
        get_i64(entry, shadow.BLOCK_LAST_READER) >> shadow.CLOCK_SHIFT == block,
    )
    if stays and (reader ^ stamp) >> shadow.WARP_SHIFT & shadow.WARP_MASK != 0:
        stays = not ordered(context, reader, get_i64(entry, shadow.OWN_READER_WITH), warp, lane, active)
    else:
        stays = False
    if not stays:
        set_i64(entry, shadow.OWN_READER, stamp)
        set_i64(entry, shadow.OWN_READER_WITH, stamp_with)
    if get_i64(entry, shadow.BLOCK_READER) == 0:
        set_i64(entry, shadow.BLOCK_READER, of_block)
    set_i64(entry, shadow.BLOCK_LAST_READER, of_block)


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, INDEX)
def _same_data(registers, op, stamp, other):
    """Whether two lanes of a store write the same value."""
    data, same = row_of(registers, op, micro.SECOND_SOURCE), True
    lane, second = (stamp >> shadow.LANE_SHIFT) & 31, (other >> shadow.LANE_SHIFT) & 31
    for word in range((get_n32(op, micro.ACCESS) & micro.SIZE_MASK) + 3 >> 2):
        same &= get_u32(data, 32 * word + lane) == get_u32(data, 32 * word + second)
    return same


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, ADDRESS, INDEX)
def _unchanged(registers, op, stamp, content, size):
    """Whether a lane's store writes the bytes that are there already."""
    data, lane, same = row_of(registers, op, micro.SECOND_SOURCE), (stamp >> shadow.LANE_SHIFT) & 31, True
    for byte in range(size):
        word = get_n32(data, 32 * (byte >> 2) + lane)
        same &= np.int64(get_u8(content, byte)) == (word >> 8 * (byte & 3)) & 255
    return same
