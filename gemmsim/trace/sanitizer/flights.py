"""Keeps track of a warp's wgmma that are under way, and of the registers that they use.

A thread must not touch a multiplication's accumulators, nor write the registers of its A, before it has waited for it
(PTX ISA, wgmma.mma_async). What it has written to such registers must be followed by wgmma.fence (WARPGROUP.ARRIVE)
before a multiplication uses them. Compilers add what is missing of these where they see it, so that it is looked for in
the machine code. Multiplications with the same accumulators may follow one another.

`WATCHED` micro-operations are those that touch a register of any wgmma of the program; `shadow_state` marks them, and
lists for each of them which registers these are.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.llvm.primitives import get_i64, get_n32, get_u64, moved, set_i64
from gemmsim.trace.sanitizer import shadow
from gemmsim.trace.sanitizer.finding_table import report, stamp_of
from gemmsim.trace.sanitizer.knowledge import (
    clock_of,
    clocks_of,
    gate_of,
    join,
    number_of,
    products_word,
    rank_of,
    shadow_of,
    tick,
)

# mypy: disable-error-code="no-untyped-def"


@subroutine(ADDRESS, ADDRESS, INDEX)
def _flight(own, number):
    return moved(own, 8 * (shadow.FLIGHT + shadow.FLIGHT_WORDS * number))


@subroutine(INDEX, ADDRESS, ADDRESS)
def _number_of(context, op):
    return np.int64(op - get_u64(context, words.CODE_AT)) // (4 * micro.COLUMNS)


@subroutine(ADDRESS, ADDRESS, INDEX)
def _registers(context, number):
    """Return the address of the registers that micro-operation `number` reads, followed by those that it writes."""
    return moved(get_u64(context, words.WATCHED_AT), 8 * shadow.WATCH_WORDS * number)


@subroutine(ADDRESS, ADDRESS, INDEX)
def _meeting(context, warp):
    """Return the vector of what the warps of a warp's warpgroup knew when they arrived there last."""
    gate = gate_of(context, rank_of(context), shadow.WARPGROUP_GATES + (warp >> 2))
    return moved(gate, 8 * shadow.GATE_VECTOR)


@subroutine(NOTHING, ADDRESS, INDEX)
def close_group(context, warp):
    """Close a group of the warp's wgmma (wgmma.commit_group)."""
    own = shadow_of(context, warp)
    set_i64(own, shadow.MULTIPLIED, get_i64(own, shadow.MULTIPLIED) + 1)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX)
def note_warpgroup(context, op, warp):
    """Note a multiplication that only closes a group, WARPGROUP.ARRIVE, WARPGROUP.WAIT, which waits for the others'
    arrival, or WARPGROUP.DEPBAR.LE gsb0, n, which waits until at most n groups are under way.
    """
    own, detail = shadow_of(context, warp), get_n32(op, micro.DETAIL)
    if detail == micro.COMMIT_PRODUCTS:
        close_group(context, warp)
    elif detail == micro.FENCE_PRODUCTS:
        set_i64(own, shadow.EPOCH, get_i64(own, shadow.EPOCH) + 1)
        join(context, _meeting(context, warp), clocks_of(context, warp))
        tick(context, warp)
    elif detail == micro.MEET_WARPGROUP:
        join(context, clocks_of(context, warp), _meeting(context, warp))
    elif detail == micro.WAIT_PRODUCTS:
        known, agent = clocks_of(context, warp), products_word(number_of(context, warp))
        done, left = get_i64(own, shadow.MULTIPLIED) - get_n32(op, micro.IMMEDIATE), np.int64(0)
        set_i64(known, agent, max(get_i64(known, agent), done))
        for number in range(get_i64(own, shadow.FLIGHTS)):
            if get_i64(_flight(own, number), shadow.FLIGHT_GROUP) > done:
                for word in range(shadow.FLIGHT_WORDS):
                    set_i64(_flight(own, left), word, get_i64(_flight(own, number), word))
                left += 1
        set_i64(own, shadow.FLIGHTS, left)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX)
def begin_flight(context, op, warp, stamp):
    """Check the registers of a multiplication, and note that it is under way. Of too many, the oldest are forgotten."""
    own, number = shadow_of(context, warp), _number_of(context, op)
    _check_products(context, op, warp, stamp)
    flights = get_i64(own, shadow.FLIGHTS)
    if flights == shadow.FLIGHT_LIMIT:
        for word in range(shadow.FLIGHT_WORDS * (flights - 1)):
            at = moved(own, 8 * shadow.FLIGHT)
            set_i64(at, word, get_i64(at, word + shadow.FLIGHT_WORDS))
        flights -= 1
    new = _flight(own, flights)
    set_i64(new, shadow.FLIGHT_OP, number)
    set_i64(new, shadow.FLIGHT_GROUP, get_i64(own, shadow.MULTIPLIED) + 1)
    set_i64(new, shadow.FLIGHT_STAMP, stamp)
    set_i64(own, shadow.FLIGHTS, flights + 1)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX)
def _check_products(context, op, warp, stamp):
    """Check that a multiplication uses no registers of one under way, except for the same accumulators, and that a
    fence lies behind what was written to its registers."""
    own, registers = shadow_of(context, warp), _registers(context, _number_of(context, op))
    for number in range(get_i64(own, shadow.FLIGHTS)):
        flight = _flight(own, number)
        other, touched = _registers(context, get_i64(flight, shadow.FLIGHT_OP)), np.int64(0)
        code = moved(get_u64(context, words.CODE_AT), 4 * micro.COLUMNS * get_i64(flight, shadow.FLIGHT_OP))
        same = get_n32(code, micro.RESULT) == get_n32(op, micro.RESULT)
        same = same and get_n32(code, micro.THIRD_IMMEDIATE) == get_n32(op, micro.THIRD_IMMEDIATE)
        for word in range(shadow.REGISTER_WORDS):
            theirs = get_i64(other, shadow.WATCH_WRITES + word)
            touched |= get_i64(registers, shadow.WATCH_READS + word) & theirs
            touched |= get_i64(registers, shadow.WATCH_WRITES + word) & get_i64(other, shadow.WATCH_READS + word)
            if not same:
                touched |= get_i64(registers, shadow.WATCH_WRITES + word) & theirs
        if touched != 0:
            report(context, shadow.EARLY_REGISTER, stamp, get_i64(flight, shadow.FLIGHT_STAMP), 0, 0)
    epoch = get_i64(own, shadow.EPOCH)
    for register in range(shadow.REGISTERS):
        word = get_i64(registers, shadow.WATCH_READS + (register >> 6))
        word |= get_i64(registers, shadow.WATCH_WRITES + (register >> 6))
        changed = get_i64(own, shadow.CHANGED + register)
        if (word >> (register & 63)) & 1 != 0 and changed != 0 and changed >> shadow.CLOCK_SHIFT == epoch:
            report(context, shadow.UNFENCED_REGISTER, stamp, changed, register, 0)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX)
def watch_registers(context, op, warp, lane):
    """Check a `WATCHED` micro-operation of a warp that is no multiplication, and note which registers it writes."""
    own, registers = shadow_of(context, warp), _registers(context, _number_of(context, op))
    instruction = get_n32(op, micro.INSTRUCTION)
    for number in range(get_i64(own, shadow.FLIGHTS)):
        flight = _flight(own, number)
        other, touched = _registers(context, get_i64(flight, shadow.FLIGHT_OP)), np.int64(0)
        written = np.int64(0)
        for word in range(shadow.REGISTER_WORDS):
            writes = get_i64(registers, shadow.WATCH_WRITES + word)
            used = get_i64(other, shadow.WATCH_WRITES + word)
            written |= writes & (used | get_i64(other, shadow.WATCH_READS + word))
            touched |= get_i64(registers, shadow.WATCH_READS + word) & used
        if touched | written != 0:
            kind = np.int64(shadow.READ) if written == 0 else np.int64(shadow.WRITTEN)
            stamp = stamp_of(context, clock_of(context, warp), warp, lane, kind, instruction)
            report(context, shadow.EARLY_REGISTER, stamp, get_i64(flight, shadow.FLIGHT_STAMP), 0, 0)
    for word in range(shadow.REGISTER_WORDS):
        writes = get_i64(registers, shadow.WATCH_WRITES + word)
        if writes != 0:
            epoch = get_i64(own, shadow.EPOCH)
            stamp = stamp_of(context, epoch, warp, lane, np.int64(shadow.WRITTEN), instruction)
            for bit in range(64):
                if (writes >> bit) & 1 != 0:
                    set_i64(own, shadow.CHANGED + 64 * word + bit, stamp)
