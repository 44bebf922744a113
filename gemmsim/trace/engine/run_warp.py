"""Holds the compiled executor's inner loop: a warp runs until it waits at a barrier of the block, ends, or must stop.

Divergent paths of a warp run one at a time and meet again at convergence barriers (BSSY, BSYNC), as on Volta and later.
`warp_runner` and `_path_end` each make a function for one variant of the executor.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, WORD, subroutine
from gemmsim.trace import micro, words
from gemmsim.trace.engine.barriers import arrive, meet_cluster, read_outcome
from gemmsim.trace.engine.differences.accesses import note_movers, relate_access
from gemmsim.trace.engine.differences.copies import relate_copy
from gemmsim.trace.engine.differences.effects import relate
from gemmsim.trace.engine.memory_access import access
from gemmsim.trace.engine.paths import add_path, next_path
from gemmsim.trace.engine.polling import LONGEST_TURN, access_in_turn, give_way
from gemmsim.trace.engine.sync_trace import note_fence
from gemmsim.trace.llvm.primitives import (
    call_part,
    equal_lanes,
    first_set,
    get_i32,
    get_i64,
    get_n32,
    get_u32,
    get_u64,
    lane_operation,
    moved,
    population,
    row_of,
    set_i32,
    set_i64,
    splat_row,
    true_lanes,
)
from gemmsim.trace.lower.context import CONTROL_NUMBER, OP_NUMBER
from gemmsim.trace.sanitizer.checks import check_access, check_matrix_move
from gemmsim.trace.sanitizer.flights import watch_registers
from gemmsim.trace.sanitizer.ordering import (
    note_active,
    note_arrival,
    note_at_cluster,
    note_effect,
    note_exit,
    note_meeting,
    note_opened_barriers,
)
from gemmsim.trace.sanitizer.unwritten import note_use

# mypy: disable-error-code="no-untyped-def"

_LANE_OPERATIONS = len(OP_NUMBER)  # their numbers are below those of all other micro-operations
_NOP, _IDLE, _BRANCH, _DIVERGENT = (CONTROL_NUMBER[n] for n in ("nop", "idle", "branch", "branch_divergent"))
_EXIT, _JUMP, _CONVERGE, _BARRIER = (CONTROL_NUMBER[n] for n in ("exit", "jump", "converge", "barrier"))
_GIVE_WAY, _CLUSTER_BARRIER = CONTROL_NUMBER["give_way"], CONTROL_NUMBER["cluster_barrier"]
_ACCESS, _BEGIN, _LEAVE, _OUTCOME = (CONTROL_NUMBER[n] for n in ("access", "begin", "leave", "barrier_outcome"))
_TRAP, _EXCHANGE, _COPY_IN_BULK = (CONTROL_NUMBER[n] for n in ("trap", "exchange", "copy_in_bulk"))
_MOVE_MATRIX = CONTROL_NUMBER["move_matrix"]
_FULL = np.uint32(0xFFFFFFFF)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD)
def _jump(context, warp, registers, op, mask):
    """Let the threads in `mask` continue at the byte offsets that a row holds, plus a constant.

    Threads with the same offset become a path of their own; the last of these paths runs next. Where there is no code
    at an offset, the path continues at the trap behind the code.
    """
    row, rest, entries = row_of(registers, op, micro.SOURCE), mask, get_i64(context, words.ENTRIES)
    while True:
        offset = get_u32(row, first_set(rest))
        group = equal_lanes(row, offset) & rest
        instruction = (np.int64(offset) + get_n32(op, micro.IMMEDIATE)) & 0xFFFFFFFF
        number = instruction >> 4
        # Nothing calls the kernel itself, at address 0: that is a null pointer.
        if number == 0 or number >= entries or instruction & 15 != 0:
            set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_LANE, get_n32(op, micro.INSTRUCTION))
            set_i64(get_u64(context, words.COUNTERS_AT), words.FAULT_ADDRESS, instruction)
            number = entries
        pc = get_i32(get_u64(context, words.START_AT), number)
        rest = rest & ~group
        if rest == 0:
            set_i64(warp, words.PC, pc)
            set_i64(warp, words.ACTIVE, group)
            return
        add_path(warp, pc, group, words.RUNNABLE, 0)


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, WORD, INDEX)
def _wait_in_groups(warp, row, pc, mask, reason):
    """Set the threads in `mask` aside, those that name the same threads as a path, to wait for the threads that they
    name in `row`."""
    rest = mask
    while rest != 0:
        named = get_u32(row, first_set(rest))
        group = equal_lanes(row, named) & rest
        add_path(warp, pc, group, reason, np.int64(named))
        rest = rest & ~group


@subroutine(NOTHING, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)
def _count(executed, threads, instruction, count, thread_count):
    """Count one more execution of each of `count` successive instructions, by `thread_count` threads."""
    for number in range(instruction, instruction + count):
        set_i64(executed, number, get_i64(executed, number) + 1)
        set_i64(threads, number, get_i64(threads, number) + thread_count)


@cache
def _path_end(sanitizing: bool):
    @subroutine(TRUTH, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, WORD, WORD)
    def end_path(context, warp, registers, op, number, pc, active, mask):
        """Let the threads in `mask` leave the path of the threads `active`, because they exit, jump, or wait.

        Threads that wait are set aside at the next micro-operation, until the threads that they wait for have arrived.
        Returns whether the warp continues; PC and ACTIVE are then those of the path that runs next.
        """
        kind = get_n32(op, micro.OP)
        if mask != active:
            add_path(warp, pc + 1, active & ~mask, words.RUNNABLE, 0)
        if sanitizing:
            if kind == _EXIT:
                note_exit(context, op, number, mask)
            elif kind == _BARRIER:
                note_arrival(context, registers, op, number, mask)
            elif kind == _CLUSTER_BARRIER:
                note_at_cluster(context, op, number, mask)
        if kind == _EXIT:
            set_i64(warp, words.ALIVE, get_i64(warp, words.ALIVE) & ~np.int64(mask))
        elif kind == _JUMP:
            _jump(context, warp, registers, op, mask)
        elif kind == _CONVERGE:
            add_path(warp, pc + 1, mask, words.WAIT_CONVERGENCE, get_n32(op, micro.RESULT))
        elif kind == _BARRIER:
            if not arrive(context, warp, registers, op, pc + 1, mask):
                add_path(warp, pc + 1, mask, words.RUNNABLE, 0)
        elif kind == _CLUSTER_BARRIER:
            if not meet_cluster(context, warp, op, pc + 1, mask):
                add_path(warp, pc + 1, mask, words.RUNNABLE, 0)
        elif kind == _GIVE_WAY:
            add_path(warp, pc + 1, mask, words.RUNNABLE, 0)
            set_i64(warp, words.ACTIVE, 0)
            return False
        else:  # WARPSYNC
            reason = words.WAIT_COLLECTIVE if get_u32(op, micro.DETAIL) != 0 else words.WAIT_WARP
            _wait_in_groups(warp, row_of(registers, op, micro.SOURCE), pc + 1, mask, reason)
        if sanitizing:
            note_opened_barriers(context)
        if kind != _JUMP and not next_path(warp, registers):
            set_i64(warp, words.ACTIVE, 0)
            return False
        if sanitizing:
            note_meeting(context, number)
        return True

    return end_path


@subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, WORD)
def _execute_rare(context, registers, op, active, mask):
    """Execute a rare micro-operation, which `micro.CONTROL` lists from "begin" to "external"; returns 0 or
    a status."""
    kind, status = get_n32(op, micro.OP), np.int64(0)
    if kind == _BEGIN:
        splat_row(row_of(registers, op, micro.RESULT), active, active)
    elif kind == _LEAVE:
        leaving = true_lanes(row_of(registers, op, micro.SOURCE), get_u32(op, micro.SOURCE_FLIP)) & mask
        if leaving != 0:  # all threads that wait at the convergence barrier see that these do not come
            row = row_of(registers, op, micro.RESULT)
            members = get_u32(row, first_set(leaving))
            splat_row(row, members & ~leaving, members)
    elif kind == _OUTCOME:
        read_outcome(context, registers, op, mask)
    elif kind == _TRAP:
        status = np.int64(words.LOST) if get_u32(op, micro.DETAIL) == micro.NOWHERE else np.int64(words.TRAP)
    else:
        status = np.int64(words.EXTERNAL)
    return status


def warp_runner(sanitizing: bool, relating: bool, interleaving: bool):
    """Make `run_warp`, the inner loop, for a variant of the executor (see `gemmsim.trace.engine.run_block`)."""
    # `run_warp` is long because its loop is the hot one: in one function, its counters stay in machine registers.
    end_path = _path_end(sanitizing)
    execute_access = access_in_turn if interleaving else access

    @subroutine(INDEX, ADDRESS, ADDRESS, ADDRESS, INDEX)
    def run_warp(context, warp, registers, number):
        """Run warp `number` of the block from its PC on, with its ACTIVE threads.

        Returns 0 where it waits or has ended, otherwise the status with which it stopped.
        """
        counters, code = get_u64(context, words.COUNTERS_AT), get_u64(context, words.CODE_AT)
        executed, threads = get_u64(context, words.EXECUTED_AT), get_u64(context, words.THREADS_AT)
        pcs, streams = get_u64(context, words.PC_AT), get_i64(context, words.STREAM) != 0
        issue_limit = get_i64(context, words.PC_LIMIT) if streams else np.int64(1) << 62
        issued, budget = get_i64(counters, words.ISSUED), get_i64(counters, words.BUDGET_LEFT)
        pc, active, status = get_i64(warp, words.PC), np.uint32(get_i64(warp, words.ACTIVE)), np.int64(0)
        turn_end = budget - LONGEST_TURN
        while True:
            op = moved(code, 4 * micro.COLUMNS * pc)
            flags, kind, mask = get_u32(op, micro.FLAGS), get_n32(op, micro.OP), active
            if flags & micro.UNGUARDED == 0:
                mask &= true_lanes(row_of(registers, op, micro.GUARD), get_u32(op, micro.GUARD_XOR))
            if interleaving:
                status = give_way(warp, flags, mask, budget <= turn_end)
                if status != 0:
                    break
            if flags & micro.FIRST != 0:
                full = issued >= issue_limit
                full = full or get_i64(counters, words.RECORDS) >= get_i64(context, words.RECORD_LIMIT)
                full = full or get_i64(counters, words.PATTERNS) >= get_i64(context, words.PATTERN_LIMIT)
                full = full or get_i64(counters, words.SYNCS) >= get_i64(context, words.SYNC_LIMIT)
                full = full or get_i64(counters, words.COLUMNS_LEFT) <= 0
                if full or budget <= 0:
                    status = np.int64(words.BUDGET) if budget <= 0 else np.int64(words.GROW)
                    break
                instruction = get_n32(op, micro.INSTRUCTION)
                _count(executed, threads, instruction, 1, population(mask))
                budget -= 1
                if streams:
                    set_i32(pcs, issued, instruction)
                    issued += 1
            if relating:
                status = relate(context, registers, op, active, mask)
                if status != 0:
                    break
            if sanitizing and mask != 0:
                if flags & micro.TOUCHES_LOADED != 0:
                    note_use(context, op, number, mask)
                if kind == _ACCESS:
                    mask = check_access(context, registers, op, mask, active, number)
                elif kind == _MOVE_MATRIX and mask == _FULL:
                    mask = check_matrix_move(context, registers, op, active, number)
                elif kind > _EXCHANGE:
                    note_active(context, active)
                if flags & micro.WATCHED != 0:
                    watch_registers(context, op, number, first_set(mask))
            if mask == 0:
                pc += 1
            elif kind < _LANE_OPERATIONS:
                written = _FULL if flags & micro.UNIFORM != 0 else mask
                lane_operation(op, registers, written)
                pc += 1
            elif kind == _BRANCH:
                taken = true_lanes(row_of(registers, op, micro.SOURCE), get_u32(op, micro.SOURCE_FLIP)) & mask
                if taken == 0:
                    pc += 1
                else:
                    if taken != active:
                        add_path(warp, pc + 1, active & ~taken, words.RUNNABLE, 0)
                    active, pc = taken, get_n32(op, micro.TARGET)
            elif kind == _IDLE and not (interleaving and streams):
                # Where blocks take turns, one may end at any instruction of a stream.
                following, others = get_n32(op, micro.INSTRUCTION) + 1, get_n32(op, micro.IMMEDIATE) - 1
                if streams:
                    others = min(others, budget, issue_limit - issued)  # the block stops where it is to stop
                    for more in range(others):
                        set_i32(pcs, issued + more, following + more)
                    issued += others
                _count(executed, threads, following, others, population(mask))
                budget -= others
                pc = get_i32(get_u64(context, words.START_AT), following + others)
            elif kind == _DIVERGENT:
                expected = get_u32(row_of(registers, op, micro.SOURCE), first_set(mask))
                expected = (expected ^ get_u32(op, micro.SOURCE_FLIP)) & np.uint32(get_i64(warp, words.ALIVE))
                together = expected == active
                pc = get_n32(op, micro.TARGET) if together == (get_u32(op, micro.DETAIL) != 0) else pc + 1
            elif kind >= _EXIT and kind <= _BARRIER:
                set_i64(counters, words.ISSUED, issued)
                set_i64(counters, words.SYNC_WARP, number + get_i64(counters, words.WARP_BASE))
                if not end_path(context, warp, registers, op, number, pc, active, mask):
                    break
                pc, active = get_i64(warp, words.PC), np.uint32(get_i64(warp, words.ACTIVE))
            else:
                if kind == _ACCESS:
                    records = get_i64(counters, words.RECORDS) if relating else np.int64(0)
                    status = execute_access(context, registers, op, mask, number)
                    if relating and status == 0:
                        relate_access(context, registers, op, mask, records)
                elif kind >= _EXCHANGE:
                    records = get_i64(counters, words.RECORDS) if relating else np.int64(0)
                    set_i64(counters, words.ISSUED, issued)
                    set_i64(counters, words.SYNC_WARP, number + get_i64(counters, words.WARP_BASE))
                    status = call_part(context, registers, op, mask, number)
                    if relating and kind == _COPY_IN_BULK and status == 0:
                        relate_copy(context, registers, op, mask, records)
                    elif relating:
                        note_movers(context, records, np.int64(0))
                elif kind > _ACCESS:
                    status = _execute_rare(context, registers, op, active, mask)
                elif kind == _NOP and get_n32(op, micro.DETAIL) == micro.MEMORY_FENCE:
                    set_i64(counters, words.ISSUED, issued)
                    set_i64(counters, words.SYNC_WARP, number + get_i64(counters, words.WARP_BASE))
                    note_fence(context, op)
                elif sanitizing and kind == _NOP:
                    note_effect(context, op, number)
                if status != 0:
                    break
                pc += 1
        set_i64(counters, words.ISSUED, issued)
        set_i64(counters, words.BUDGET_LEFT, budget)
        if status != 0:
            set_i64(counters, words.FAULT_INSTRUCTION, get_n32(op, micro.INSTRUCTION))
            set_i64(counters, words.FAULT_WARP, number)
            set_i64(warp, words.PC, pc)
            set_i64(warp, words.ACTIVE, active)
        return status

    return run_warp
