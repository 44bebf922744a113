"""Manages the divergent paths of one warp. A path is a set of its threads that run together.

`warp` is the address of the warp's words, which `gemmsim.trace.words` names.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import words
from gemmsim.trace.llvm.primitives import first_set, get_i64, get_n32, moved, set_i64

# mypy: disable-error-code="no-untyped-def"


@subroutine(NOTHING, ADDRESS, INDEX, INDEX, INDEX, INDEX)
def add_path(warp, pc, mask, reason, need):
    """Set the threads in `mask` aside as a path of the warp, which continues at micro-operation `pc`.

    reason, need  why the path does not run, and what it waits for: PATH_REASON and PATH_NEED in `gemmsim.trace.words`

    There is always room, because the paths of a warp are disjoint sets of its 32 threads.
    """
    count = get_i64(warp, words.PATH_COUNT)
    path = moved(warp, 8 * (words.PATHS_AT + words.PATH_WORDS * count))
    set_i64(path, words.PATH_PC, pc)
    set_i64(path, words.PATH_MASK, mask)
    set_i64(path, words.PATH_REASON, reason)
    set_i64(path, words.PATH_NEED, need)
    set_i64(warp, words.PATH_COUNT, count + 1)


@subroutine(NOTHING, ADDRESS)
def set_aside_first(warp):
    """Set the path that runs aside, so that all paths that were set aside before it run first."""
    count, paths = get_i64(warp, words.PATH_COUNT), moved(warp, 8 * words.PATHS_AT)
    for word in range(words.PATH_WORDS * count - 1, -1, -1):
        set_i64(paths, word + words.PATH_WORDS, get_i64(paths, word))
    set_i64(warp, words.PATH_COUNT, 0)
    add_path(warp, get_i64(warp, words.PC), get_i64(warp, words.ACTIVE), words.RUNNABLE, 0)
    set_i64(warp, words.PATH_COUNT, count + 1)
    set_i64(warp, words.ACTIVE, 0)


@subroutine(TRUTH, ADDRESS, ADDRESS)
def next_path(warp, registers):
    """Continue with the path, of those that can run, that was set aside last; return whether there is one.

    Where there is none, the warp's STATE is set. Threads that wait for each other run as soon as all of them that are
    still alive have arrived. Threads at a convergence barrier or a collective instruction then run together; threads at
    WARPSYNC run in the groups that arrived together.
    """
    count, alive = get_i64(warp, words.PATH_COUNT), get_i64(warp, words.ALIVE)
    paths = moved(warp, 8 * words.PATHS_AT)
    for i in range(count - 1, -1, -1):
        path = moved(paths, 8 * words.PATH_WORDS * i)
        pc, joined = get_i64(path, words.PATH_PC), get_i64(path, words.PATH_MASK)
        reason, need = get_i64(path, words.PATH_REASON), get_i64(path, words.PATH_NEED)
        members = np.int64(1) << i
        if reason == words.WAIT_BLOCK:
            continue
        if reason != words.RUNNABLE:
            wanted = need
            if reason == words.WAIT_CONVERGENCE:  # the barrier is a row of the registers, because BREAK may change it
                wanted = get_n32(registers, need + first_set(joined))
            for j in range(count):
                other = moved(paths, 8 * words.PATH_WORDS * j)
                mask = get_i64(other, words.PATH_MASK)
                same = get_i64(other, words.PATH_REASON) == reason and get_i64(other, words.PATH_NEED) == need
                if same and reason == words.WAIT_CONVERGENCE:
                    same = get_i64(other, words.PATH_PC) == pc and get_n32(registers, need + first_set(mask)) == wanted
                if same:
                    joined |= mask
                    members |= np.int64(1) << j
            if wanted & alive & ~joined != 0:
                continue
        paths_left, running = np.int64(0), np.int64(0)
        for j in range(count):
            other = moved(paths, 8 * words.PATH_WORDS * j)
            if (members >> j) & 1 == 1:
                if reason != words.WAIT_WARP or get_i64(other, words.PATH_PC) == pc:
                    running |= get_i64(other, words.PATH_MASK)
                    continue
                set_i64(other, words.PATH_REASON, words.RUNNABLE)
            if paths_left != j:
                for word in range(words.PATH_WORDS):
                    set_i64(paths, words.PATH_WORDS * paths_left + word, get_i64(other, word))
            paths_left += 1
        if reason != words.RUNNABLE:
            set_i64(warp, words.MEETINGS, get_i64(warp, words.MEETINGS) + 1)
            set_i64(warp, words.LAST_MET, joined)
        set_i64(warp, words.PATH_COUNT, paths_left)
        set_i64(warp, words.PC, pc)
        set_i64(warp, words.ACTIVE, running)
        set_i64(warp, words.STATE, words.READY)
        return True
    set_i64(warp, words.STATE, words.DONE if alive == 0 else words.WAITING)
    return False


@subroutine(INDEX, ADDRESS)
def go_on_unmet(warp):
    """Let paths that wait at WARPSYNC run where all threads that they wait for are at a convergence barrier.

    Call it when nothing else in the block can run; returns how many paths can run now. CUDA leaves undefined what
    __syncwarp() does when a thread that its mask names waits elsewhere. The threads do not hang on GPUs: numba's
    cuda.reduce relies on it.
    """
    released, at_convergence = np.int64(0), np.int64(0)
    count, alive = get_i64(warp, words.PATH_COUNT), get_i64(warp, words.ALIVE)
    for i in range(count):
        path = moved(warp, 8 * (words.PATHS_AT + words.PATH_WORDS * i))
        if get_i64(path, words.PATH_REASON) == words.WAIT_CONVERGENCE:
            at_convergence |= get_i64(path, words.PATH_MASK)
    for i in range(count):
        path = moved(warp, 8 * (words.PATHS_AT + words.PATH_WORDS * i))
        waits = get_i64(path, words.PATH_REASON) == words.WAIT_WARP
        missing = get_i64(path, words.PATH_NEED) & alive & ~get_i64(path, words.PATH_MASK)
        if waits and missing & ~at_convergence == 0:
            set_i64(path, words.PATH_REASON, words.RUNNABLE)
            set_i64(warp, words.STATE, words.READY)
            released += 1
    return released
