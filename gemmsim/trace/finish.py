"""Executes all blocks of a launch for what they store."""

from __future__ import annotations

import numpy as np

from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.execute import Executor

_BLOCKS_AT_ONCE = 64  # whose trace is held, until it is dropped


def finish(executor: Executor, blocks: range | None = None) -> None:
    """Execute every block from the arguments' initial content, and keep no trace: `Executor.memory` has the results.

    blocks  which blocks, where not all of them

    The budget of the executor holds for each piece of the launch, not for all of it.
    """
    blocks = range(executor.launch.blocks) if blocks is None else blocks
    executor.buffers = Buffers(executor.launch.warps_per_block, executor.micro.accesses, executor.budget)
    at_once = len(blocks) if executor.residents else _BLOCKS_AT_ONCE
    for first in range(0, len(blocks), at_once):
        executor.buffers.clear(executor.budget)
        now = blocks[first : first + at_once]
        executor.execute_blocks(now, np.zeros(len(now), bool), fresh=not first)
