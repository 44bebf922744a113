"""Executes all blocks of a launch for what they store."""

from __future__ import annotations

import numpy as np

from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.execute import Executor

_BLOCKS_AT_ONCE = 64  # whose trace is held, until it is dropped


def finish(executor: Executor) -> None:
    """Execute every block from the arguments' initial content, and keep no trace: `Executor.memory` has the results.

    The budget of the executor holds for each piece of the launch, not for all of it.
    """
    blocks, warps = executor.launch.blocks, executor.launch.warps_per_block
    executor.buffers = Buffers(warps, executor.micro.accesses, executor.budget)
    at_once = blocks if executor.residents else _BLOCKS_AT_ONCE
    for first in range(0, blocks, at_once):
        executor.buffers.clear(executor.budget)
        now = range(first, min(first + at_once, blocks))
        executor.execute_blocks(now, np.zeros(len(now), bool), fresh=not first)
