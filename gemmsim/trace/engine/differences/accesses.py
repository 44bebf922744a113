"""Follows differences through loads, stores and atomics, and notes by which vector the address of each record moves."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro
from gemmsim.trace import words as executor
from gemmsim.trace.engine.differences import words
from gemmsim.trace.engine.differences.effects import same_for_all
from gemmsim.trace.engine.differences.vectors import (
    intern,
    is_unknown,
    memo_slot,
    mixed,
    must_be_aligned,
    must_be_zero,
    must_stay_a_word,
    shadow_of,
    shadow_row,
    subtracted,
    tables_of,
    vector_at,
)
from gemmsim.trace.engine.move import move
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS
from gemmsim.trace.llvm.primitives import (
    any_of_row,
    equal_lanes,
    first_set,
    get_i32,
    get_i64,
    get_n32,
    get_u8,
    get_u16,
    get_u32,
    get_u64,
    has,
    lane_address,
    moved,
    row_of,
    set_i32,
    set_i64,
    set_u8,
    set_u32,
    set_u64,
    splat_row,
)

# mypy: disable-error-code="no-untyped-def"

_SECTOR_SHIFT = 5
_SECTOR_BYTES = 1 << _SECTOR_SHIFT
_WORD_RANGE = np.int64(1) << 32


@subroutine(WORD, ADDRESS, ADDRESS, WORD)
def _at_least(rows, limit, mask):
    """Return the lanes in `mask` whose address is at least `limit`."""
    lanes = np.uint32(0)
    for lane in range(32):
        if has(mask, lane) and lane_address(rows, lane) >= limit:
            lanes |= np.uint32(1) << np.uint32(lane)
    return lanes


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD)
def _mover(own, rows, shadow, mask):
    """Return the vector by which the global addresses of the lanes in `mask` move.

    All lanes must move alike and, where they are not at one place, by whole lines, for the access to have the same
    shape. Blocks where they do not, or whose addresses differ in their high words, are not in the leader's class.
    """
    first = get_i32(shadow, first_set(mask))
    lowest, highest = get_u64(own, words.LOWEST_AT), get_u64(own, words.HIGHEST_AT)
    for lane in range(32):
        if not has(mask, lane):
            continue
        must_be_zero(own, get_i32(moved(shadow, 128), lane))
        number, low = get_i32(shadow, lane), np.int64(get_u32(rows, lane))
        if is_unknown(number):
            must_be_zero(own, number)
        if low + get_i64(lowest, number) < 0 or low + get_i64(highest, number) >= _WORD_RANGE:
            must_stay_a_word(own, number, low)
        if number != first:
            must_be_zero(own, subtracted(own, number, first))
    low = get_u32(rows, first_set(mask))
    if equal_lanes(rows, low) & mask == mask:
        return _sector_mover(own, first, low)
    must_be_aligned(own, first)
    return first


@subroutine(INDEX, ADDRESS, INDEX, WORD)
def _sector_mover(own, number, low):
    """Return the vector of the whole sectors by which an access to one place, in one sector, moves.

    number  vector by which the address moves
    low     low word of the address

    Such an access has the same shape wherever it is in its line.
    """
    within = np.int64(low & np.uint32(_SECTOR_BYTES - 1))
    key = mixed(mixed(np.uint64(6), np.uint64(number)), np.uint64(within)) | np.uint64(1)
    slot = memo_slot(own, key)
    values = moved(get_u64(own, words.MEMO_VALUES_AT), 4 * words.RESULTS * slot)
    if get_u64(get_u64(own, words.MEMO_KEYS_AT), slot) != key:
        candidate = vector_at(own, get_i64(own, words.USED))
        for b in range(get_i64(own, words.BLOCKS)):
            sectors = (within + get_i32(vector_at(own, number), b)) >> _SECTOR_SHIFT
            set_u32(candidate, b, np.uint32((sectors << _SECTOR_SHIFT) & 0xFFFFFFFF))
        set_i32(values, 0, intern(own))
        set_u64(get_u64(own, words.MEMO_KEYS_AT), slot, key)
        set_i64(own, words.MEMO_USED, get_i64(own, words.MEMO_USED) + 1)
    return get_i32(values, 0)


@subroutine(INDEX, ADDRESS, ADDRESS, INDEX)
def _content_at(context, address, size):
    """Return what the launch's memory holds at an address, or -1 where it is outside, or where the leader stored."""
    for i in range(get_i64(context, executor.ALLOCATIONS)):
        offset = address - get_u64(get_u64(context, executor.ALLOCATION_START), i)
        length = get_u64(get_u64(context, executor.ALLOCATION_SIZE), i)
        if offset < length and moved(offset, size) <= length:
            if get_u64(get_u64(context, executor.ALLOCATION_STALE), i) != np.uint64(0):
                return np.int64(-1)
            at = moved(get_u64(get_u64(context, executor.ALLOCATION_PLACE), i), np.int64(offset))
            if size == 1:
                return np.int64(get_u8(at, 0))
            if size == 2:
                return np.int64(get_u16(at, 0))
            return np.int64(get_u32(at, 0))
    return np.int64(-1)


@subroutine(TRUTH, ADDRESS, ADDRESS, INDEX, INDEX, INDEX, TRUTH)
def _contents(context, address, number, size, signed, outside):
    """Make the candidate of the words that each block loads from another address, or where `outside` holds one that
    tells which blocks load from outside of all arrays; return whether none does. Other parameters: see `_loaded`.

    Neighbouring blocks often load the same word, which is looked up once.
    """
    own = tables_of(context)
    vector, candidate = vector_at(own, number), vector_at(own, get_i64(own, words.USED))
    leader = _content_at(context, address, size)
    top = np.int64(1) << (8 * size - 1) if size < 4 and signed != 0 else np.int64(0)
    inside, before, content = leader >= 0, np.int64(0), leader
    for b in range(get_i64(own, words.BLOCKS)):
        element = get_i32(vector, b)
        if element != before:
            before, content = element, _content_at(context, moved(address, element), size)
            inside &= content >= 0
        if outside:
            set_u32(candidate, b, np.uint32(1) if content < 0 else np.uint32(0))
        else:
            set_u32(candidate, b, np.uint32(((content ^ top) - (leader ^ top)) & 0xFFFFFFFF))
    return inside


@subroutine(INDEX, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _loaded(context, address, number, size, signed):
    """Return the vector of a word that each block loads from another address.

    number  vector by which the address differs
    size    bytes of the word; of an item of up to 2 bytes, `signed` says whether it is extended by its sign

    Blocks whose address is outside of all arrays are not in the leader's class.
    """
    own = tables_of(context)
    key = mixed(mixed(mixed(np.uint64(4), address), np.uint64(number)), np.uint64(size + 8 * signed)) | np.uint64(1)
    slot = memo_slot(own, key)
    values = moved(get_u64(own, words.MEMO_VALUES_AT), 4 * words.RESULTS * slot)
    if get_u64(get_u64(own, words.MEMO_KEYS_AT), slot) == key:
        return get_i32(values, 0)
    left = get_i64(own, words.LOADS_LEFT)
    set_i64(own, words.LOADS_LEFT, left - 1)
    if left <= 0:
        return np.int64(words.UNKNOWN)
    used = get_i64(own, words.USED)
    if not _contents(context, address, number, size, signed, False):
        _contents(context, address, number, size, signed, True)
        must_be_zero(own, intern(own))
        _contents(context, address, number, size, signed, False)
    found = intern(own)
    for made in range(used, get_i64(own, words.USED)):
        set_u8(get_u64(own, words.DATA_AT), made, 1)
    set_u64(get_u64(own, words.MEMO_KEYS_AT), slot, key)
    set_i32(values, 0, found)
    set_i64(own, words.MEMO_USED, get_i64(own, words.MEMO_USED) + 1)
    return found


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD, ADDRESS)
def _load_global(context, registers, op, mask, rows):
    """Set the shadows of what a load from global memory has written."""
    own, how = tables_of(context), get_n32(op, micro.ACCESS)
    size, result = how & micro.SIZE_MASK, shadow_of(own, registers, op, micro.RESULT)
    moves = shadow_row(own, rows)
    for word in range((size + 3) >> 2):
        for lane in range(32):
            if has(mask, lane):
                number, address = get_i32(moves, lane), moved(lane_address(rows, lane), 4 * word)
                if number != 0:
                    number = _loaded(context, address, number, min(size, 4), how & micro.SIGNED_BIT)
                set_i32(result, 32 * word + lane, number)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def _set_results(own, registers, op, mask, number):
    """Set the shadows of the words that a load or an atomic has written, or would have written, to one vector."""
    for word in range(((get_n32(op, micro.ACCESS) & micro.SIZE_MASK) + 3) >> 2):
        splat_row(moved(shadow_of(own, registers, op, micro.RESULT), 128 * word), np.uint32(number), mask)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD, ADDRESS, TRUTH)
def _move_in_block(context, registers, op, mask, rows, local):
    """Load or store the shadows of words in shared memory, or in local memory, as the words themselves are.

    Parts of words are not followed: they are unknown once anything in these memories differs.
    """
    own, how, some = tables_of(context), get_n32(op, micro.ACCESS), False
    size, kind = how & micro.SIZE_MASK, how >> micro.KIND_SHIFT
    if kind != micro.LOAD:
        for word in range((size + 3) >> 2):
            some |= any_of_row(moved(shadow_of(own, registers, op, micro.SECOND_SOURCE), 128 * word))
    if not some and get_i64(own, words.DIFFERENT) == 0:
        if kind != micro.STORE:
            _set_results(own, registers, op, mask, np.int64(0))
        return
    delta, stride = get_u64(own, words.SHARED_AT) - get_u64(context, executor.SHARED_BASE), np.int64(4)
    shape = np.int64(executor.PATTERN_SCATTERED)
    if local:
        delta = get_u64(own, words.LOCAL_AT) - np.uint64(executor.LOCAL_BASE)
        shape = np.int64(executor.PATTERN_STACKED)
        stride = np.int64(executor.STACK_STRIDE)
    set_i64(own, words.DIFFERENT, 1)
    if kind != micro.ATOMIC and size >= 4:
        shadows = shadow_row(own, registers)
        move(context, shadows, op, mask, rows, delta, np.uint64(0), shape)
        return
    if kind != micro.STORE:
        _set_results(own, registers, op, mask, np.int64(words.UNKNOWN))
    if kind != micro.LOAD:
        for lane in range(32):
            if has(mask, lane):
                at = (lane_address(rows, lane) & ~np.uint64(3)) + delta
                for word in range((size + 3) >> 2):
                    set_i32(moved(at, stride * word), 0, np.int64(words.UNKNOWN))


@subroutine(NOTHING, ADDRESS, INDEX, INDEX)
def note_movers(context, first_record, mover):
    """Note the vector that moves each new record's address: `mover` in global memory, else 0, which moves nothing."""
    movers, bases = get_u64(context, executor.RECORD_MOVER_AT), get_u64(context, executor.RECORD_BASE_AT)
    for n in range(first_record, get_i64(get_u64(context, executor.COUNTERS_AT), executor.RECORDS)):
        set_i32(movers, n, mover if get_u64(bases, n) >= np.uint64(FIRST_ADDRESS) else np.int64(0))


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def relate_access(context, registers, op, mask, first_record):
    """Follow the differences through an access to memory; call it after it was executed.

    first_record  number of the first record that it left
    """
    own, how = tables_of(context), get_n32(op, micro.ACCESS)
    rows, shadow = row_of(registers, op, micro.SOURCE), shadow_of(own, registers, op, micro.SOURCE)
    space, kind = (how >> micro.SPACE_SHIFT) & micro.SPACE_MASK, how >> micro.KIND_SHIFT
    globally, mover = np.uint32(0), np.int64(0)
    if space == micro.GLOBAL:
        globally = mask
    elif space == micro.GENERIC:
        globally = _at_least(rows, np.uint64(FIRST_ADDRESS), mask)
    if mask != globally:
        same_for_all(own, shadow, mask & ~globally)
        same_for_all(own, moved(shadow, 128), mask & ~globally)
    if globally != 0 and (any_of_row(shadow) or any_of_row(moved(shadow, 128))):
        mover = _mover(own, rows, shadow, globally)
    note_movers(context, first_record, mover)
    if space == micro.CONSTANT:
        uniform = get_u32(op, micro.FLAGS) & micro.UNIFORM != 0
        _set_results(own, registers, op, np.uint32(0xFFFFFFFF) if uniform else mask, np.int64(0))
    elif how & micro.UNMOVED_BIT != 0:
        if kind != micro.STORE:
            _set_results(own, registers, op, mask, np.int64(0))
    else:
        if globally != 0 and kind == micro.LOAD:
            _load_global(context, registers, op, globally, rows)
        elif globally != 0 and kind == micro.ATOMIC:
            known = get_i64(own, words.IN_COLUMNS) != 0
            _set_results(own, registers, op, globally, np.int64(0) if known else np.int64(words.UNKNOWN))
        local = _at_least(rows, np.uint64(executor.LOCAL_BASE), mask & ~globally)
        shared = mask & ~globally & ~local
        if shared != 0:
            _move_in_block(context, registers, op, shared, rows, False)
        if local != 0:
            _move_in_block(context, registers, op, local, rows, True)
