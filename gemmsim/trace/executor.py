"""Functional execution of one thread block, compiled: every lane of every warp, every address real.

Warps run one after the other up to a barrier or their end. Inside a warp, divergent paths run one at a time and meet
again at convergence barriers (BSSY, BSYNC), as on Volta and later. What a warp does is appended to the trace buffers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gemmsim.trace import micro
from gemmsim.trace.codegen import guard_mask, lane_operation, population
from gemmsim.trace.lower.context import CONTROL_NUMBER, OP_NUMBER
from gemmsim.trace.memory_access import access_memory
from gemmsim.trace.paths import block_barrier, next_path, wait_for
from gemmsim.trace.raw import first_set, get_u32, set_u32, splat_row
from gemmsim.trace.state import (
    AT_BARRIER,
    BUDGET,
    BUDGET_LEFT,
    DEADLOCK,
    DONE,
    FAULT_INSTRUCTION,
    FAULT_WARP,
    FINISHED,
    GROW,
    ISSUED,
    MAX_PATHS,
    PATTERNS,
    READY,
    RECORDS,
    SEGMENTS,
    TOO_DIVERGENT,
    WAIT_WARP,
    WARP_BASE,
)
from gemmsim.trace.tensor import tensor

_LANE_OPS = len(OP_NUMBER)
_EXIT, _BRA, _BSSY, _BSYNC = (CONTROL_NUMBER[n] for n in ("exit", "bra", "bssy", "bsync"))
_BREAK, _WARPSYNC, _BAR, _BRA_DIV = (CONTROL_NUMBER[n] for n in ("break", "warpsync", "bar", "bra_divergent"))
_NOP, _LOAD, _STORE, _ATOMIC = (CONTROL_NUMBER[n] for n in ("nop", "load", "store", "atomic"))
_SHUFFLE, _VOTE, _FIRST, _LOAD_CONSTANT = (CONTROL_NUMBER[n] for n in ("shuffle", "vote", "first_lane", "load_constant"))
_LOAD_MATRIX, _MULTIPLY_MATRIX = CONTROL_NUMBER["load_matrix"], CONTROL_NUMBER["multiply_matrix"]
_ROW_BYTES = micro.COLUMNS * 4


@njit(cache=True, boundscheck=False, error_model="numpy")
def predicate_bits(state, op):  # type: ignore[no-untyped-def]
    """Bit l set where the first source, a predicate, holds in lane l."""
    row = state + np.uint64(get_u32(op, micro.SOURCE)) * np.uint64(4)
    flip = get_u32(op, micro.SOURCE + 2)
    bits = np.uint32(0)
    for lane in range(32):
        bits |= ((get_u32(row, lane) ^ flip) & np.uint32(1)) << np.uint32(lane)
    return bits


@njit(cache=True, boundscheck=False, error_model="numpy")
def exchange(kind, state, op, mask):  # type: ignore[no-untyped-def]
    """Shuffle, vote and first lane: the operations that look across lanes (PTX ISA: shfl.sync, vote.sync)."""
    source = state + np.uint64(get_u32(op, micro.SOURCE)) * np.uint64(4)
    flip = get_u32(op, micro.SOURCE + 2)
    result = state + np.uint64(get_u32(op, micro.RESULT)) * np.uint64(4)
    second = state + np.uint64(get_u32(op, micro.RESULT + 1)) * np.uint64(4)
    detail = np.int64(get_u32(op, micro.BARRIER))
    if kind == _FIRST:
        splat_row(result, get_u32(source, first_set(mask)) ^ flip, np.uint32(0xFFFFFFFF))
    elif kind == _VOTE:
        holds = predicate_bits(state, op) & mask
        if detail == 0:
            outcome = holds == mask
        elif detail == 1:
            outcome = holds != np.uint32(0)
        else:
            outcome = holds == mask or holds == np.uint32(0)
        written = np.uint32(0xFFFFFFFF) if get_u32(op, micro.IMMEDIATE) else mask
        splat_row(result, holds, written)
        splat_row(second, np.uint32(0xFFFFFFFF) if outcome else np.uint32(0), written)
    else:
        other = state + np.uint64(get_u32(op, micro.SOURCE + 3)) * np.uint64(4)
        clamps = state + np.uint64(get_u32(op, micro.SOURCE + 6)) * np.uint64(4)
        picked, inside = np.empty(32, np.uint32), np.empty(32, np.uint32)
        for lane in range(32):
            b, clamp = np.int64(get_u32(other, lane)) & 31, np.int64(get_u32(clamps, lane))
            segment, limit = (clamp >> 8) & 31, clamp & 31
            highest = (lane & segment) | (limit & ~segment & 31)
            if detail == 1:
                partner = lane - b
                valid = partner >= highest
            elif detail == 0:
                partner = (lane & segment) | (b & ~segment & 31)
                valid = partner <= highest
            else:
                partner = lane + b if detail == 2 else lane ^ b
                valid = partner <= highest
            picked[lane] = get_u32(source, partner if valid else lane) ^ flip
            inside[lane] = np.uint32(0xFFFFFFFF) if valid else np.uint32(0)
        for lane in range(32):
            if (mask >> np.uint32(lane)) & np.uint32(1):
                set_u32(result, lane, picked[lane])
                set_u32(second, lane, inside[lane])


@njit(cache=True, boundscheck=False, error_model="numpy")
def run_block(code_address, registers_address, row_words, warps, context, trace, executed, threads, record_pcs):
    """Run the block whose state is in `warps` until it ends or a status says why it stopped.

    code_address       of the micro-operations, uint32 [micro-operations, COLUMNS]
    registers_address  of the state, uint32 [warps, row_words]
    warps              (pc, active, alive, state, path_pc, path_mask, path_wait, path_count, barrier_mask)
    context            address of the slots named in `gemmsim.trace.state`
    trace              (counters, segment_warp, segment_start, pc, record limit, pattern limit)
    executed, threads  int64 [instructions] counted up
    """
    pc_of, active_of, alive_of, state, path_pc, path_mask, path_wait, path_count, barrier_mask = warps
    counters, segment_warp, segment_start, pc_stream = trace[0], trace[1], trace[2], trace[3]
    record_limit, pattern_limit = trace[4], trace[5]
    n_warps = len(state)
    while True:
        ran = False
        for w in range(n_warps):
            if state[w] != READY:
                continue
            ran = True
            if counters[SEGMENTS] >= len(segment_warp) - 1:
                return GROW
            segment_warp[counters[SEGMENTS]] = counters[WARP_BASE] + w
            segment_start[counters[SEGMENTS]] = counters[ISSUED]
            counters[SEGMENTS] += 1
            own = np.uint64(registers_address + np.uint64(w * row_words * 4))
            pc, active = np.int64(pc_of[w]), active_of[w]
            issued = counters[ISSUED]
            budget = counters[BUDGET_LEFT]
            issue_limit = len(pc_stream) if record_pcs else np.int64(1) << 62
            status = -1
            while True:
                op = np.uint64(code_address + np.uint64(pc * _ROW_BYTES))
                flags = get_u32(op, micro.FLAGS)
                mask = active
                if not flags & np.uint32(micro.UNGUARDED):
                    guard = guard_mask(op, own)
                    mask = guard if flags & np.uint32(micro.UNIFORM) else guard & active
                kind = np.int64(get_u32(op, micro.OP))
                if flags & np.uint32(micro.FIRST):
                    if issued >= issue_limit:
                        status = GROW
                        break
                    if budget <= 0:
                        counters[FAULT_INSTRUCTION] = np.int64(get_u32(op, micro.INSTRUCTION))
                        status = BUDGET
                        break
                    if counters[RECORDS] >= record_limit or counters[PATTERNS] >= pattern_limit:
                        status = GROW
                        break
                    instruction = np.int64(get_u32(op, micro.INSTRUCTION))
                    budget -= 1
                    executed[instruction] += 1
                    threads[instruction] += population(mask & active)
                    if record_pcs:
                        pc_stream[issued] = instruction
                        issued += 1
                if kind < _LANE_OPS:
                    if flags & np.uint32(micro.UNIFORM) and flags & np.uint32(micro.UNGUARDED):
                        mask = np.uint32(0xFFFFFFFF)
                    lane_operation(op, own, mask)
                    pc += 1
                    continue
                if kind == _LOAD_MATRIX or kind == _MULTIPLY_MATRIX:
                    fault = tensor(kind, own, op, mask, w, context)
                    if fault != 0:
                        counters[FAULT_INSTRUCTION] = np.int64(get_u32(op, micro.INSTRUCTION))
                        counters[FAULT_WARP] = w
                        status = fault
                        break
                    pc += 1
                elif kind == _LOAD or kind == _STORE or kind == _ATOMIC or kind == _LOAD_CONSTANT:
                    if flags & np.uint32(micro.UNIFORM):
                        mask = np.uint32(0xFFFFFFFF)
                    if mask != np.uint32(0):
                        fault = access_memory(kind, own, op, mask, w, context)
                        if fault != 0:
                            counters[FAULT_INSTRUCTION] = np.int64(get_u32(op, micro.INSTRUCTION))
                            counters[FAULT_WARP] = w
                            status = fault
                            break
                    pc += 1
                elif kind == _NOP:
                    pc += 1
                elif kind == _BRA:
                    taken = mask & predicate_bits(own, op)
                    if taken == np.uint32(0):
                        pc += 1
                    elif taken == active:
                        pc = np.int64(get_u32(op, micro.TARGET))
                    else:
                        if path_count[w] >= MAX_PATHS:
                            status = TOO_DIVERGENT
                            break
                        path_pc[w, path_count[w]] = pc + 1
                        path_mask[w, path_count[w]] = active & ~taken
                        path_wait[w, path_count[w]] = -1
                        path_count[w] += 1
                        active, pc = taken, np.int64(get_u32(op, micro.TARGET))
                elif kind == _SHUFFLE or kind == _VOTE or kind == _FIRST:
                    exchange(kind, own, op, mask)
                    pc += 1
                elif kind == _BSSY:
                    barrier_mask[w, np.int64(get_u32(op, micro.BARRIER))] = active
                    pc += 1
                elif kind == _BREAK:
                    barrier_mask[w, np.int64(get_u32(op, micro.BARRIER))] &= ~mask
                    pc += 1
                elif kind == _BRA_DIV:
                    pc = np.int64(get_u32(op, micro.TARGET)) if active != alive_of[w] else pc + 1
                elif kind == _EXIT:
                    alive_of[w] &= ~mask
                    active &= ~mask
                    pc += 1
                    if active == np.uint32(0):
                        found, pc, active = next_path(w, alive_of, path_pc, path_mask, path_wait, path_count, barrier_mask)
                        if not found:
                            if alive_of[w] == np.uint32(0):
                                state[w] = DONE
                            elif block_barrier(w, alive_of, path_mask, path_wait, path_count):
                                state[w] = AT_BARRIER
                            else:
                                status = DEADLOCK
                            break
                else:  # bsync, warpsync, bar: this path waits unless everybody it waits for is here
                    reason = np.int64(get_u32(op, micro.BARRIER)) if kind == _BSYNC else np.int64(WAIT_WARP)
                    if kind == _BAR:
                        reason += 1
                    elif kind == _WARPSYNC:
                        barrier_mask[w, WAIT_WARP] = alive_of[w]
                    waiting = mask
                    if waiting == np.uint32(0):
                        pc += 1
                        continue
                    if path_count[w] >= MAX_PATHS - 1:
                        status = TOO_DIVERGENT
                        break
                    if waiting != active:
                        path_pc[w, path_count[w]] = pc + 1
                        path_mask[w, path_count[w]] = active & ~waiting
                        path_wait[w, path_count[w]] = -1
                        path_count[w] += 1
                    if kind != _BAR and waiting == barrier_mask[w, reason] & alive_of[w]:
                        active = waiting
                        pc += 1
                        continue
                    wait_for(w, pc + 1, waiting, reason, path_pc, path_mask, path_wait, path_count)
                    found, pc, active = next_path(w, alive_of, path_pc, path_mask, path_wait, path_count, barrier_mask)
                    if not found:
                        if block_barrier(w, alive_of, path_mask, path_wait, path_count):
                            state[w] = AT_BARRIER
                        else:
                            status = DEADLOCK
                        break
            pc_of[w], active_of[w] = pc, active
            counters[ISSUED], counters[BUDGET_LEFT] = issued, budget
            if status >= 0:
                counters[FAULT_WARP] = w
                return status
        if ran:
            continue
        waiting_warps = 0
        for w in range(n_warps):
            if state[w] == AT_BARRIER:
                waiting_warps += 1
        if waiting_warps == 0:
            return FINISHED
        for w in range(n_warps):
            if state[w] == AT_BARRIER:
                for i in range(path_count[w]):
                    path_wait[w, i] = -1
                found, pc, active = next_path(w, alive_of, path_pc, path_mask, path_wait, path_count, barrier_mask)
                pc_of[w], active_of[w] = pc, active
                state[w] = READY
