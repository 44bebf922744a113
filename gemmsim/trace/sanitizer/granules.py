"""Compares an access to shared memory with those before it, granule after granule, and remembers it.

Shared memory has a shadow. It remembers of each granule (a few bytes, see `shadow`) the last write and some readers, of
different warps. A read is compared with that write, and a write with that write and the readers. Two accesses that are
not ordered (`ordering.ordered`) race, unless both are atomic or the later one writes the bytes that are there already;
compute-sanitizer, too, calls a write of the same value harmless. Two lanes of one store race where they write different
values to one place. A read of what nobody wrote yet races with the first write where another lane of the same warp
makes it before the next barrier: the compiler has chosen one order of the two. What a load to registers reads of what
nobody wrote is told when the register is used (`unwritten`). What TMA and wgmma do with bytes that a
thread wrote must also come after a fence of the asynchronous proxy (`knowledge.fence`).

So many readers of a granule are enough where all barriers are of the whole block. With barriers of some warps a race
with one more reader can be missed. No race is reported where there is none.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u8, get_u32, get_u64, moved, row_of, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report
from gemmsim.trace.sanitizer.knowledge import clock_word, clocks_of, exit_of, granules_of, known_to, rank_of, shared_of
from gemmsim.trace.sanitizer.ordering import COPY_NOT_WAITED, copy_state, ordered
from gemmsim.trace.sanitizer.unwritten import note_unwritten

# mypy: disable-error-code="no-untyped-def"

_IN_BLOCK = (1 << words.RANK_SHIFT) - 1  # the bits of an address that say where it is in a block's memory


@subroutine(INDEX, INDEX)
def kind_of(stamp):
    return (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK


@subroutine(NOTHING, ADDRESS)
def next_serial(context):
    """Begin another access: what is written from here on is not by the same store as what was written before."""
    header = get_u64(context, words.FINDINGS_AT)
    set_i64(header, shadow.SERIAL, get_i64(header, shadow.SERIAL) + 1)


@subroutine(ADDRESS, ADDRESS, INDEX)
def _granules_at(context, address):
    """Return where the granules of the block are whose memory holds an address."""
    return granules_of(context, address >> words.RANK_SHIFT)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, WORD)
def check_granules(context, registers, op, address, stamp, stamp_with, active):
    """Check one lane's access to an address in the cluster's window of shared memory, and note it in the shadow."""
    size = get_n32(op, micro.ACCESS) & micro.SIZE_MASK
    lane, kind, shift = (stamp >> shadow.LANE_SHIFT) & 31, kind_of(stamp), get_i64(context, words.GRANULE_SHIFT)
    serial = get_i64(get_u64(context, words.FINDINGS_AT), shadow.SERIAL)
    granules, place = _granules_at(context, address), address & _IN_BLOCK
    for granule in range(place >> shift, (place + size - 1 >> shift) + 1):
        entry = moved(granules, 8 * shadow.SHADOW_WORDS * granule)
        last, last_with = get_i64(entry, shadow.WRITE), get_i64(entry, shadow.WRITE_WITH)
        same_store = last != 0 and get_i64(entry, shadow.WRITE_SERIAL) == serial
        if kind != shadow.READ and same_store and kind_of(last) != shadow.ATOMIC:
            if not _same_data(registers, op, lane, (last >> shadow.LANE_SHIFT) & 31, size):
                report(context, shadow.RACE, stamp, last, address, size)
        else:
            defect = _against_write(context, last, last_with, stamp, active)
            if defect == shadow.RACE and kind >= shadow.WRITTEN and _unchanged(context, registers, op, lane, address):
                defect = np.int64(-1)
            if defect == shadow.UNWRITTEN and get_n32(op, micro.FLAGS) & micro.TELLS_LATE != 0:
                for byte in range((granule << shift) - place, (granule + 1 << shift) - place, 4):
                    note_unwritten(context, op, stamp, address, byte >> 2)
            elif defect >= 0:
                _report(context, defect, stamp, last, last_with, address, size)
        _note(context, entry, stamp, stamp_with, address, size, active)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX, WORD)
def check_asynchronous(context, address, size, stamp, stamp_with, active):
    """Check what TMA or wgmma does with `size` bytes of shared memory, and note it in the shadow.

    address  in the cluster's window
    stamp    of the instruction that begins it, as are the lanes `active`
    """
    shift, granules, place = get_i64(context, words.GRANULE_SHIFT), _granules_at(context, address), address & _IN_BLOCK
    for granule in range(place >> shift, (place + size - 1 >> shift) + 1):
        entry, at = moved(granules, 8 * shadow.SHADOW_WORDS * granule), address - place + (granule << shift)
        last, last_with = get_i64(entry, shadow.WRITE), get_i64(entry, shadow.WRITE_WITH)
        defect = _against_write(context, last, last_with, stamp, active)
        if defect < 0 and last != 0 and not _visible(context, last, last_with, (stamp >> shadow.WARP_SHIFT) & 31):
            defect = np.int64(shadow.UNFENCED)
        if defect >= 0:
            _report(context, defect, stamp, last, last_with, at, np.int64(1) << shift)
        _note(context, entry, stamp, stamp_with, at, np.int64(1) << shift, active)


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX, INDEX, INDEX)
def _report(context, defect, stamp, other, other_with, address, size):
    header = get_u64(context, words.FINDINGS_AT)
    set_i64(header, shadow.OTHER_WITH, other_with)
    report(context, defect, stamp, other, address, size)
    set_i64(header, shadow.OTHER_WITH, 0)


@subroutine(INDEX, ADDRESS, INDEX, INDEX, INDEX, WORD)
def _against_write(context, last, last_with, stamp, active):
    """Compare an access with the last write of a granule; returns a defect, -1 where there is none."""
    kind, last_kind = kind_of(stamp), kind_of(last)
    warp, lane = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    if last == 0:
        return np.int64(shadow.UNWRITTEN if kind <= shadow.ATOMIC else -1)
    if kind == shadow.ATOMIC and last_kind == shadow.ATOMIC:
        return np.int64(-1)
    if ordered(context, last, last_with, warp, lane, active):
        return np.int64(-1)
    if last_kind == shadow.BULK_WRITE:
        return np.int64(shadow.UNWAITED)
    if last_kind == shadow.COPY and copy_state(context, last, last_with, warp) == COPY_NOT_WAITED:
        return np.int64(shadow.UNWAITED)
    return np.int64(shadow.RACE)


@subroutine(TRUTH, ADDRESS, INDEX, INDEX, INDEX)
def _visible(context, last, last_with, warp):
    """Whether a write that comes before is visible to the asynchronous proxy, as far as `warp` knows."""
    known, kind = clocks_of(context, warp), kind_of(last)
    owner = (last >> shadow.WARP_SHIFT) & shadow.WARP_MASK
    if kind == shadow.BULK_WRITE:
        return True
    if kind == shadow.COPY:
        return last_with & shadow.WITH_MASK <= get_i64(known, clock_word(shadow.FENCED_COPIES, owner))
    return last >> shadow.CLOCK_SHIFT <= get_i64(known, clock_word(shadow.FENCED, owner))


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, INDEX, WORD)
def _note(context, entry, stamp, stamp_with, address, size, active):
    """Note an access in the shadow. A write is compared with the readers first, and takes their place."""
    warp, lane = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.LANE_SHIFT) & 31
    if kind_of(stamp) <= shadow.LAST_READ:
        _note_reader(context, entry, stamp, stamp_with, active)
        return
    for slot in range(shadow.READERS_AT, shadow.READERS_END, 2):
        reader, reader_with = get_i64(entry, slot), get_i64(entry, slot + 1)
        early = get_i64(entry, shadow.WRITE) == 0 and kind_of(reader) == shadow.READ and _same_interval(reader, stamp)
        if reader != 0 and (early or not ordered(context, reader, reader_with, warp, lane, active)):
            defect = np.int64(shadow.RACE)
            if kind_of(reader) == shadow.MATRIX_READ:
                defect = np.int64(shadow.UNWAITED_MATRIX)
            elif kind_of(reader) == shadow.BULK_READ:
                defect = np.int64(shadow.UNWAITED_READER)
            report(context, defect, stamp, reader, address, size)
        set_i64(entry, slot, 0)
    set_i64(entry, shadow.WRITE, stamp)
    set_i64(entry, shadow.WRITE_WITH, stamp_with)
    set_i64(entry, shadow.WRITE_SERIAL, get_i64(get_u64(context, words.FINDINGS_AT), shadow.SERIAL))


@subroutine(TRUTH, INDEX, INDEX)
def _same_interval(reader, stamp):
    """Whether two accesses are of different lanes of one warp, with no barrier of the warp between."""
    differ = reader ^ stamp
    return differ >> shadow.WARP_SHIFT == 0 and differ >> shadow.LANE_SHIFT != 0


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, WORD)
def _note_reader(context, entry, stamp, stamp_with, active):
    """Note a reader in the shadow in place of an earlier one that says no more: one that comes before, one of the same
    warp and kind, or an earlier group of wgmma of the same warpgroup."""
    number, lane, kind = (
        (stamp >> shadow.WARP_SHIFT) & shadow.WARP_MASK,
        (stamp >> shadow.LANE_SHIFT) & 31,
        kind_of(stamp),
    )
    for slot in range(shadow.READERS_AT, shadow.READERS_END, 2):
        reader, reader_with = get_i64(entry, slot), get_i64(entry, slot + 1)
        owner, alike = (reader >> shadow.WARP_SHIFT) & shadow.WARP_MASK, kind_of(reader) == kind
        if reader != 0 and alike and kind == shadow.MATRIX_READ and owner >> 2 == number >> 2:
            if reader_with > stamp_with:  # another warp of the warpgroup is ahead
                return
        elif reader != 0 and not (
            (alike and owner == number) or ordered(context, reader, reader_with, number & 31, lane, active)
        ):
            continue
        set_i64(entry, slot, stamp)
        set_i64(entry, slot + 1, stamp_with)
        return


@subroutine(NOTHING, ADDRESS, ADDRESS)
def check_visitors(context, known):
    """Report what other blocks of the cluster do to the shared memory of the block, which ends, if `known`, a vector,
    does not know that it is over."""
    stamp, base = exit_of(context, rank_of(context)), get_i64(context, words.SHARED_BASE)
    shift = get_i64(context, words.GRANULE_SHIFT)
    for granule in range((get_i64(context, words.OWN_SHARED_BYTES) >> shift) + 1):
        entry = moved(get_u64(context, words.SHADOW_AT), 8 * shadow.SHADOW_WORDS * granule)
        for reader in range(-1, shadow.READERS):
            slot = np.int64(shadow.WRITE if reader < 0 else shadow.READERS_AT + 2 * reader)
            other, other_with = get_i64(entry, slot), get_i64(entry, slot + 1)
            foreign = other != 0 and other >> shadow.RANK_SHIFT & shadow.RANK_MASK != rank_of(context)
            if foreign and not known_to(known, other, other_with):
                report(context, shadow.ENDS, stamp, other, base + (granule << shift), np.int64(1) << shift)


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _same_data(registers, op, lane, other, size):
    """Whether two lanes of a store write the same value."""
    data, same = row_of(registers, op, micro.SECOND_SOURCE), True
    for word in range(size + 3 >> 2):
        same &= get_u32(data, 32 * word + lane) == get_u32(data, 32 * word + other)
    return same


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def _unchanged(context, registers, op, lane, address):
    """Whether a lane's store writes the bytes that are at `address` already."""
    data, same = row_of(registers, op, micro.SECOND_SOURCE), True
    there = moved(shared_of(context, address >> words.RANK_SHIFT), address & _IN_BLOCK)
    for byte in range(get_n32(op, micro.ACCESS) & micro.SIZE_MASK):
        word = get_n32(data, 32 * (byte >> 2) + lane)
        same &= np.int64(get_u8(there, byte)) == (word >> 8 * (byte & 3)) & 255
    return same
