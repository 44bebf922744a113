"""Functional execution of one thread block, compiled: every lane of every warp, every address real.

Warps run one after the other up to a barrier or their end. Inside a warp, divergent paths run one at a time and meet
again at convergence barriers (BSSY, BSYNC), as on Volta and later. What a warp does is appended to the trace buffers.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, WORD, subroutine
from gemmsim.trace.engine.barriers import arrive, outcome, wake
from gemmsim.trace.engine.exchange import exchange
from gemmsim.trace.engine.matrix import tensor
from gemmsim.trace.engine.memory_access import access
from gemmsim.trace.engine.paths import add_path, next_path
from gemmsim.trace.llvm.lane_operations import lane_operation
from gemmsim.trace.llvm.primitives import (
    equal_lanes,
    first_set,
    get_i32,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    moved,
    population,
    row_of,
    set_i32,
    set_i64,
    splat_row,
    true_lanes,
)
from gemmsim.trace.lower.context import CONTROL_NUMBER, OP_NUMBER
from gemmsim.trace.micro import (
    COLUMNS,
    DETAIL,
    FIRST,
    FLAGS,
    GUARD,
    GUARD_XOR,
    IMMEDIATE,
    INSTRUCTION,
    OP,
    RESULT,
    SOURCE,
    SOURCE_FLIP,
    TARGET,
    UNGUARDED,
    UNIFORM,
)
from gemmsim.trace.sanitizer.checks import watched, watched_matrix
from gemmsim.trace.sanitizer.ordering import arrives, copies, ends, met, opened
from gemmsim.trace.words import (
    ACTIVE,
    ALIVE,
    BUDGET,
    BUDGET_LEFT,
    CODE_AT,
    COUNTERS_AT,
    DEADLOCK,
    EXECUTED_AT,
    FAULT_INSTRUCTION,
    FAULT_WARP,
    FINISHED,
    GROW,
    ISSUED,
    PARTIAL_WARP,
    PATTERN_LIMIT,
    PATTERNS,
    PC,
    PC_AT,
    PC_LIMIT,
    READY,
    RECORD_LIMIT,
    RECORDS,
    REGISTERS_AT,
    ROW_WORDS,
    RUNNABLE,
    SEGMENT_LIMIT,
    SEGMENT_RECORD_AT,
    SEGMENT_START_AT,
    SEGMENT_WARP_AT,
    SEGMENTS,
    START_AT,
    STATE,
    STREAM,
    THREADS_AT,
    TRAP,
    WAIT_COLLECTIVE,
    WAIT_CONVERGENCE,
    WAIT_WARP,
    WARP_BASE,
    WARP_WORDS,
    WARPS,
    WARPS_AT,
)

# mypy: disable-error-code="no-untyped-def"

_LANE_OPS = len(OP_NUMBER)
_NOP, _IDLE, _EXIT, _BRANCH, _DIVERGENT, _JUMP = (
    CONTROL_NUMBER[n] for n in ("nop", "idle", "exit", "branch", "branch_divergent", "jump")
)
_BEGIN, _LEAVE, _CONVERGE, _BARRIER, _OUTCOME = (
    CONTROL_NUMBER[n] for n in ("begin", "leave", "converge", "barrier", "barrier_outcome")
)
_EXCHANGE, _ACCESS, _TRAP, _LOAD_MATRIX = (CONTROL_NUMBER[n] for n in ("exchange", "access", "trap", "load_matrix"))
_FULL = np.uint32(0xFFFFFFFF)


@subroutine(NOTHING, ADDRESS, ADDRESS, WORD)
def _leave(state, op, mask):
    """BREAK: these threads leave the convergence barrier; all that wait at it see so."""
    row = row_of(state, op, RESULT)
    members = get_u32(row, first_set(mask))
    splat_row(row, members & ~mask, members)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD)
def _jump(context, warp, state, op, mask):
    """Threads continue at the byte offsets in a row plus a constant: one path an offset, the last of them now."""
    row, rest = row_of(state, op, SOURCE), mask
    while True:
        offset = get_u32(row, first_set(rest))
        group = equal_lanes(row, offset) & rest
        instruction = (np.int64(offset) + get_n32(op, IMMEDIATE)) & 0xFFFFFFFF
        pc = get_i32(get_u64(context, START_AT), instruction >> 4)
        rest = rest & ~group
        if rest == 0:
            set_i64(warp, PC, pc)
            set_i64(warp, ACTIVE, group)
            return
        add_path(warp, pc, group, RUNNABLE, 0)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, WORD)
def _wait(warp, state, op, kind, pc, mask):
    """BSYNC and WARPSYNC: the threads are set aside at `pc` until those that they wait for have come."""
    if kind == _CONVERGE:
        add_path(warp, pc, mask, WAIT_CONVERGENCE, get_n32(op, RESULT))
        return
    wanted = get_n32(row_of(state, op, SOURCE), first_set(mask))
    add_path(warp, pc, mask, WAIT_COLLECTIVE if get_u32(op, DETAIL) != 0 else WAIT_WARP, wanted)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _count(executed, threads, instruction, count, population):
    """So many instructions in a row were executed once more, by so many threads."""
    for number in range(instruction, instruction + count):
        set_i64(executed, number, get_i64(executed, number) + 1)
        set_i64(threads, number, get_i64(threads, number) + population)


def run_block_for(everything: bool, watching: bool):
    """The function that `gemmsim.trace.engine.variants` names, for numba to compile."""

    def run_block(context):
        """Run the block whose state `context` (the address of the words named in `gemmsim.trace.words`) describes until
        it ends or a status says why it stopped."""
        counters, code = get_u64(context, COUNTERS_AT), get_u64(context, CODE_AT)
        executed, threads = get_u64(context, EXECUTED_AT), get_u64(context, THREADS_AT)
        stream, warps = get_i64(context, STREAM), get_i64(context, WARPS)
        issue_limit = get_i64(context, PC_LIMIT) if stream != 0 else np.int64(1) << 62
        while True:
            ran = False
            for w in range(warps):
                warp = moved(get_u64(context, WARPS_AT), 8 * WARP_WORDS * w)
                state = moved(get_u64(context, REGISTERS_AT), 4 * get_i64(context, ROW_WORDS) * w)
                if get_i64(warp, STATE) != READY or (get_i64(warp, ACTIVE) == 0 and not next_path(warp, state)):
                    continue
                if watching:
                    met(context, w)
                ran = True
                segment = get_i64(counters, SEGMENTS)
                if segment >= get_i64(context, SEGMENT_LIMIT):
                    return GROW
                set_i32(get_u64(context, SEGMENT_WARP_AT), segment, get_i64(counters, WARP_BASE) + w)
                set_i64(get_u64(context, SEGMENT_START_AT), segment, get_i64(counters, ISSUED))
                set_i64(get_u64(context, SEGMENT_RECORD_AT), segment, get_i64(counters, RECORDS))
                set_i64(counters, SEGMENTS, segment + 1)
                pc, active = get_i64(warp, PC), np.uint32(get_i64(warp, ACTIVE))
                issued, budget = get_i64(counters, ISSUED), get_i64(counters, BUDGET_LEFT)
                pcs = get_u64(context, PC_AT)
                status = np.int64(-1)
                while True:
                    op = moved(code, 4 * COLUMNS * pc)
                    flags, kind = get_u32(op, FLAGS), get_n32(op, OP)
                    mask = active
                    if flags & UNGUARDED == 0:
                        mask &= true_lanes(row_of(state, op, GUARD), get_u32(op, GUARD_XOR))
                    if flags & FIRST != 0:
                        instruction = get_n32(op, INSTRUCTION)
                        full = get_i64(counters, RECORDS) >= get_i64(context, RECORD_LIMIT)
                        full = full or get_i64(counters, PATTERNS) >= get_i64(context, PATTERN_LIMIT)
                        if full or issued >= issue_limit or budget <= 0:
                            set_i64(counters, FAULT_INSTRUCTION, instruction)
                            status = np.int64(BUDGET) if budget <= 0 else np.int64(GROW)
                            break
                        budget -= 1
                        set_i64(executed, instruction, get_i64(executed, instruction) + 1)
                        set_i64(threads, instruction, get_i64(threads, instruction) + population(mask))
                        if stream != 0:
                            set_i32(pcs, issued, instruction)
                            issued += 1
                    if mask == 0:  # nobody executes it
                        pc += 1
                        continue
                    if kind < _LANE_OPS:
                        lane_operation(op, state, _FULL if flags & UNIFORM != 0 else mask)
                        pc += 1
                        continue
                    if watching:
                        if kind == _ACCESS:
                            mask = watched(context, state, op, mask, active, w)
                        elif everything and kind == _LOAD_MATRIX and mask == _FULL:
                            mask = watched_matrix(context, state, op, active, w)
                        if mask == 0:
                            pc += 1
                            continue
                    if kind == _ACCESS:
                        status = access(context, state, op, mask, w)
                        if status != 0:
                            set_i64(counters, FAULT_INSTRUCTION, get_n32(op, INSTRUCTION))
                            break
                        status = np.int64(-1)
                    elif kind == _IDLE:
                        if stream == 0:
                            instruction = get_n32(op, INSTRUCTION)
                            others = get_n32(op, IMMEDIATE) - 1
                            _count(executed, threads, instruction + 1, others, population(mask))
                            budget -= others
                            pc = get_n32(op, TARGET)
                            continue
                    elif kind == _BRANCH:
                        taken = true_lanes(row_of(state, op, SOURCE), get_u32(op, SOURCE_FLIP)) & mask
                        if taken != 0:
                            if taken != active:
                                add_path(warp, pc + 1, active & ~taken, RUNNABLE, 0)
                            active, pc = taken, get_n32(op, TARGET)
                            continue
                    elif kind == _EXCHANGE:
                        if everything:
                            status = exchange(state, op, mask)
                            if status != 0:
                                set_i64(counters, FAULT_INSTRUCTION, get_n32(op, INSTRUCTION))
                                break
                            status = np.int64(-1)
                    elif kind == _BEGIN:
                        splat_row(row_of(state, op, RESULT), active, active)
                    elif kind == _LEAVE:
                        taken = true_lanes(row_of(state, op, SOURCE), get_u32(op, SOURCE_FLIP)) & mask
                        if taken != 0:
                            _leave(state, op, taken)
                    elif kind == _DIVERGENT:
                        expected = get_u32(row_of(state, op, SOURCE), first_set(mask)) ^ get_u32(op, SOURCE_FLIP)
                        together = expected & np.uint32(get_i64(warp, ALIVE)) == active
                        if together == (get_u32(op, DETAIL) != 0):
                            pc = get_n32(op, TARGET)
                            continue
                    elif kind >= _LOAD_MATRIX:
                        status = np.int64(PARTIAL_WARP)
                        if everything and mask == _FULL:
                            status = tensor(context, state, op, w, kind == _LOAD_MATRIX)
                        if status != 0:
                            set_i64(counters, FAULT_INSTRUCTION, get_n32(op, INSTRUCTION))
                            break
                        status = np.int64(-1)
                    elif kind == _OUTCOME:
                        outcome(context, state, op, mask)
                    elif kind == _TRAP:
                        set_i64(counters, FAULT_INSTRUCTION, get_n32(op, INSTRUCTION))
                        status = np.int64(TRAP)
                        break
                    elif kind != _NOP:  # the rest of the path goes on without these threads, or another path does
                        if mask != active:
                            add_path(warp, pc + 1, active & ~mask, RUNNABLE, 0)
                        chosen = False
                        if watching:
                            if kind == _EXIT:
                                ends(context, op, w, mask)
                            elif kind == _BARRIER:
                                arrives(context, state, op, w, mask)
                        if kind == _EXIT:
                            set_i64(warp, ALIVE, get_i64(warp, ALIVE) & ~np.int64(mask))
                        elif kind == _JUMP:
                            _jump(context, warp, state, op, mask)
                            chosen = True
                        elif kind != _BARRIER:
                            _wait(warp, state, op, kind, pc + 1, mask)
                        elif not arrive(context, warp, state, op, pc + 1, mask):
                            add_path(warp, pc + 1, mask, RUNNABLE, 0)
                        if watching:
                            opened(context)
                        if not chosen and not next_path(warp, state):
                            set_i64(warp, ACTIVE, 0)
                            break
                        if watching:
                            met(context, w)
                        pc, active = get_i64(warp, PC), np.uint32(get_i64(warp, ACTIVE))
                        continue
                    elif watching:
                        copies(context, op, w)
                    pc += 1
                set_i64(counters, ISSUED, issued)
                set_i64(counters, BUDGET_LEFT, budget)
                if status >= 0:
                    set_i64(warp, PC, pc)
                    set_i64(warp, ACTIVE, active)
                    set_i64(counters, FAULT_WARP, w)
                    return status
            if not ran:
                count = wake(context)
                if watching:
                    opened(context)
                if count <= 0:
                    return FINISHED if count == 0 else DEADLOCK

    return run_block
