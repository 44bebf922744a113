"""What cutting asks of the executor that runs a block, and of the tables that relate other blocks to it.

Both import this package, so it knows them by these protocols, as `tiles` knows what it cuts blocks by.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace.block_state import BlockState
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.lower import MicroProgram
from gemmsim.trace.steady.period import Period
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


class Skips(Protocol):
    """The parts of `skip.Skipping` that `tiles.Tiles` and `again.Again` use."""

    warps: int

    @property
    def done(self) -> int: ...

    def registers(self) -> NDArray[np.uint32]: ...

    def record(self, wanted: bool = True) -> None: ...

    def stream_of_block(self, most: int) -> NDArray[np.int64]: ...

    def states(self, length: int, warps: range) -> Generator[int, None, Period | None]: ...

    def attempt(self, lengths: list[int], warps: range) -> Generator[int, None, int]: ...

    def cut_behind(self, period: Period, least: int) -> Generator[int, None, bool]: ...


class Tables(Protocol):
    """The parts of `gemmsim.trace.differences.leader.Tables` that are used here."""

    blocks: NDArray[np.int64]
    shadow: NDArray[np.int32]
    threads: NDArray[np.int64]

    def bounds(self, number: int) -> tuple[int, int] | None: ...
