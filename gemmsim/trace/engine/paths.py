"""Divergent paths of one warp: which runs next, and which waits for whom. `warp` is the address of the warp's words."""

from __future__ import annotations

import numpy as np

from gemmsim.native.numba_parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace.llvm.primitives import first_set, get_i64, get_n32, moved, set_i64
from gemmsim.trace.words import (
    ACTIVE,
    ALIVE,
    DONE,
    JOINED,
    JOINS,
    PATH_COUNT,
    PATH_MASK,
    PATH_NEED,
    PATH_PC,
    PATH_REASON,
    PATH_WORDS,
    PATHS_AT,
    PC,
    READY,
    RUNNABLE,
    STATE,
    WAIT_BLOCK,
    WAIT_CONVERGENCE,
    WAIT_WARP,
    WAITING,
)

# mypy: disable-error-code="no-untyped-def"


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def add_path(warp, pc, mask, reason, need):
    """Set threads aside. There is room: the paths of a warp are disjoint sets of its 32 threads."""
    count = get_i64(warp, PATH_COUNT)
    path = moved(warp, 8 * (PATHS_AT + PATH_WORDS * count))
    set_i64(path, PATH_PC, pc)
    set_i64(path, PATH_MASK, mask)
    set_i64(path, PATH_REASON, reason)
    set_i64(path, PATH_NEED, need)
    set_i64(warp, PATH_COUNT, count + 1)


@subroutine(TRUTH, ADDRESS, ADDRESS)
def next_path(warp, registers):
    """Continue with the youngest path that can run; returns False, the warp's state set, where there is none.

    Threads that wait for each other run as soon as all that are still alive have arrived: those of a convergence
    barrier and of a collective instruction together, those of WARPSYNC each group where it stands.
    """
    count, alive = get_i64(warp, PATH_COUNT), get_i64(warp, ALIVE)
    paths = moved(warp, 8 * PATHS_AT)
    for i in range(count - 1, -1, -1):
        path = moved(paths, 8 * PATH_WORDS * i)
        pc, joined = get_i64(path, PATH_PC), get_i64(path, PATH_MASK)
        reason, need = get_i64(path, PATH_REASON), get_i64(path, PATH_NEED)
        members = np.int64(1) << i
        if reason == WAIT_BLOCK:
            continue
        if reason != RUNNABLE:
            wanted = need
            if reason == WAIT_CONVERGENCE:  # the barrier is a row of the registers, because BREAK may change it
                wanted = get_n32(registers, need + first_set(joined))
            for j in range(count):
                other = moved(paths, 8 * PATH_WORDS * j)
                mask = get_i64(other, PATH_MASK)
                same = get_i64(other, PATH_REASON) == reason and get_i64(other, PATH_NEED) == need
                if same and reason == WAIT_CONVERGENCE:
                    same = get_i64(other, PATH_PC) == pc and get_n32(registers, need + first_set(mask)) == wanted
                if same:
                    joined |= mask
                    members |= np.int64(1) << j
            if wanted & alive & ~joined != 0:
                continue
        kept, running = np.int64(0), np.int64(0)
        for j in range(count):
            other = moved(paths, 8 * PATH_WORDS * j)
            if (members >> j) & 1 == 1:
                if reason != WAIT_WARP or get_i64(other, PATH_PC) == pc:
                    running |= get_i64(other, PATH_MASK)
                    continue
                set_i64(other, PATH_REASON, RUNNABLE)
            if kept != j:
                for word in range(PATH_WORDS):
                    set_i64(paths, PATH_WORDS * kept + word, get_i64(other, word))
            kept += 1
        if reason != RUNNABLE:
            set_i64(warp, JOINS, get_i64(warp, JOINS) + 1)
            set_i64(warp, JOINED, joined)
        set_i64(warp, PATH_COUNT, kept)
        set_i64(warp, PC, pc)
        set_i64(warp, ACTIVE, running)
        set_i64(warp, STATE, READY)
        return True
    set_i64(warp, STATE, DONE if alive == 0 else WAITING)
    return False
