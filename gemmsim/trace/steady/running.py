"""What cutting asks of the executor that runs a block, and of the tables that relate other blocks to it.

Both import this package, so it knows them by these protocols.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace.block_state import BlockState
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.lower import MicroProgram
from gemmsim.trace.types import Launch


class Executor(Protocol):
    """The parts of `gemmsim.trace.execute.Executor` that are used here."""

    launch: Launch
    micro: MicroProgram
    state: BlockState
    buffers: Buffers
    context: NDArray[np.uint64]
    cutting: Any  # `cutting.Cutting`, which imports this module, too

    @property
    def trace_slice(self) -> NDArray[np.uint32] | None: ...

    @property
    def count_slice(self) -> NDArray[np.uint32] | None: ...


class Tables(Protocol):
    """The parts of `gemmsim.trace.differences.leader.Tables` that are used here."""

    blocks: NDArray[np.int64]
    shadow: NDArray[np.int32]
    threads: NDArray[np.int64]
