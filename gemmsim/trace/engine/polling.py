"""Decides where a warp gives way to other resident blocks, and notices where it only repeats what it did before.

It is compiled into the interleaving variant of the executor only. `gemmsim.trace.turns` marks the accesses that matter.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.memory_access import access
from gemmsim.trace.llvm.primitives import (
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    has,
    lane_address,
    moved,
    row_of,
    set_i64,
    set_u64,
)

# mypy: disable-error-code="no-untyped-def"

# A warp gives way after so many instructions at the latest, for waits that `gemmsim.trace.turns` does not recognise.
LONGEST_TURN = 1 << 20
# Flags of TURN_FLAGS: the warp has given way and may execute its atomic; its last atomic found what it found before;
# its last load did.
_MAY_PASS, _REPEATED, _SPINS, _FLAGS = 1, 2, 4, 7


@subroutine(INDEX, ADDRESS, WORD, WORD, TRUTH)
def give_way(warp, flags, mask, long_enough):
    """Return 0 where a warp may execute the micro-operation at which it is, else the status with which it gives way.

    flags, mask  the micro-operation's FLAGS, and the threads that execute it
    long_enough  whether the warp has run for LONGEST_TURN instructions
    """
    turn = get_i64(warp, words.TURN_FLAGS)
    if turn & _SPINS != 0:
        set_i64(warp, words.TURN_FLAGS, turn & ~_SPINS)
        return np.int64(words.SPINS)
    if flags & micro.TAKES_TURN != 0 and mask != 0:
        set_i64(warp, words.TURN_FLAGS, turn ^ _MAY_PASS)
        if turn & _MAY_PASS == 0:
            return np.int64(words.SPINS if turn & _REPEATED != 0 else words.GIVES_WAY)
    elif long_enough:
        return np.int64(words.GIVES_WAY)
    return np.int64(0)


@subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def _repeats(context, registers, op, mask, number):
    """Return whether an access of warp `number` found what the same access of this warp found last, at the same place.

    Addresses and results of all lanes are compared by a digest of 64 bits. A wrong answer makes a block give way
    once more, or once less, and changes nothing that the block computes.
    """
    rows, results = row_of(registers, op, micro.SOURCE), row_of(registers, op, micro.RESULT)
    size = ((get_n32(op, micro.ACCESS) & micro.SIZE_MASK) + 3) >> 2
    digest = np.uint64(mask)
    for lane in range(32):
        if has(mask, lane):
            digest = (digest ^ lane_address(rows, lane)) * np.uint64(0x9E3779B97F4A7C15)
            for word in range(size):
                digest ^= digest >> np.uint64(29)
                digest = (digest ^ np.uint64(get_u32(results, 32 * word + lane))) * np.uint64(0x9E3779B97F4A7C15)
    polls, entry = get_u64(context, words.POLLS_AT), number * get_i64(context, words.ACCESSES) + get_n32(op, micro.SLOT)
    last = get_u64(polls, entry)
    set_u64(polls, entry, digest)
    return last == digest


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def access_in_turn(context, registers, op, mask, number):
    """Execute a memory operation as `memory_access.access` does, and remember whether it only repeats.

    After a marked load that repeats, the warp gives way. Before a marked atomic it gives way anyway, so that a
    repetition is remembered until then.
    """
    status, marks = access(context, registers, op, mask, number), get_u32(op, micro.FLAGS)
    if status == 0 and marks & (micro.TAKES_TURN | micro.POLLS) != 0:
        warp = moved(get_u64(context, words.WARPS_AT), 8 * words.WARP_WORDS * number)
        flag = _REPEATED if marks & micro.TAKES_TURN != 0 else _SPINS
        turn = get_i64(warp, words.TURN_FLAGS) & _FLAGS & ~np.int64(flag)
        turn |= get_n32(op, micro.INSTRUCTION) << words.TURN_INSTRUCTION_SHIFT
        set_i64(warp, words.TURN_FLAGS, turn | flag if _repeats(context, registers, op, mask, number) else turn)
    return status
