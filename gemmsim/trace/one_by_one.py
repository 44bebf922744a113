"""Lets blocks run one after the other that would run interleaved: those of a cluster, and those that take turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.turns import takes_turns
from gemmsim.trace.waiting import has_mbarriers

if TYPE_CHECKING:
    from gemmsim.trace.execute import Executor


def run_in_order(executor: Executor) -> None:
    """Let blocks run one after the other from now on. Each of a cluster does to itself what it does to the others."""
    executor.residents = None
    executor.context[words.CLUSTER_AT] = 0
    for slot, address in executor.state.addresses().items():  # blocks that ran interleaved had states of their own
        executor.context[slot] = address


@contextmanager
def one_by_one(executor: Executor) -> Iterator[None]:
    """Let blocks run one after the other meanwhile."""
    usual = executor.residents
    run_in_order(executor)
    try:
        yield
    finally:
        executor.residents = usual


def counts_one_by_one(executor: Executor, blocks: Sequence[int]) -> NDArray[np.int64] | None:
    """Count how often `blocks`, whose warps wait at mbarriers, execute each instruction; int64 [blocks, instructions].

    Iterations of steady loops are left out, and counted. Returns None where the blocks do not run one by one.
    """
    waiting = executor.cutting.allowed and has_mbarriers(executor.micro) and not takes_turns(executor.micro)
    if not waiting or executor.trace_slice is None:
        return None
    try:
        with one_by_one(executor):
            return executor.sketch(executor.trace_slice, blocks, cutting=True).executed
    except Stopped:
        return None
