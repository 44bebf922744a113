"""Divergent paths of one warp: which runs next, which waits for whom."""

from __future__ import annotations

import numpy as np
from numba import njit

from gemmsim.trace.state import RUNNABLE, WAIT_BLOCK

# mypy: disable-error-code="no-untyped-def"


@njit(cache=True, boundscheck=False)
def wait_for(w, pc, mask, reason, path_pc, path_mask, path_wait, path_count):
    """Park a path until everybody that convergence barrier `reason` names has arrived."""
    n = path_count[w]
    path_pc[w, n], path_mask[w, n], path_wait[w, n] = pc, mask, reason
    path_count[w] = n + 1


@njit(cache=True, boundscheck=False)
def next_path(w, alive, path_pc, path_mask, path_wait, path_count, barrier_mask):
    """Take the next path that can run: (found, pc, mask). Paths whose convergence barrier is complete are merged."""
    n = path_count[w]
    for i in range(n - 1, -1, -1):
        reason = path_wait[w, i]
        if reason == RUNNABLE:
            pc, mask = np.int64(path_pc[w, i]), path_mask[w, i]
            _remove(w, i, path_pc, path_mask, path_wait, path_count)
            return True, pc, mask
        if reason == WAIT_BLOCK:
            continue
        arrived = np.uint32(0)
        for j in range(n):
            if path_wait[w, j] == reason and path_pc[w, j] == path_pc[w, i]:
                arrived |= path_mask[w, j]
        if arrived == barrier_mask[w, reason] & alive[w]:
            pc = np.int64(path_pc[w, i])
            for j in range(n - 1, -1, -1):
                if path_wait[w, j] == reason and path_pc[w, j] == pc:
                    _remove(w, j, path_pc, path_mask, path_wait, path_count)
            return True, pc, arrived
    return False, np.int64(0), np.uint32(0)


@njit(cache=True, boundscheck=False)
def block_barrier(w, alive, path_mask, path_wait, path_count):
    """Whether every thread of the warp that is still alive waits at the block's barrier."""
    waiting = np.uint32(0)
    for i in range(path_count[w]):
        if path_wait[w, i] == WAIT_BLOCK:
            waiting |= path_mask[w, i]
    return waiting == alive[w]


@njit(cache=True, boundscheck=False)
def _remove(w, i, path_pc, path_mask, path_wait, path_count):
    last = path_count[w] - 1
    for j in range(i, last):
        path_pc[w, j], path_mask[w, j], path_wait[w, j] = path_pc[w, j + 1], path_mask[w, j + 1], path_wait[w, j + 1]
    path_count[w] = last
