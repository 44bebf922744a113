"""Notices a warp that never ends: it is again in a state in which it was before, or runs far longer than a warp does.

A block's budget is lent in parts. After each part it is looked at whether one warp has used all of it. If so, the warp
goes on instruction by instruction for a while, and its state is compared with the one at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import row_of
from gemmsim.isa.program import Program
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.stopped import Stopped

PART = 1 << 22  # instructions that are lent at a time
LONGEST_CYCLE = 4096  # instructions: a loop whose iteration is longer is found by its budget
# One warp may execute this part of the budget of the whole launch, unless another warp runs meanwhile.
OF_A_WARP = 10


class Patience:
    """Lends the budget of a run to its blocks, which run one after the other.

    buffers     of the run, which begins
    budget      warp instructions
    state       of the block that runs; None where its states are not compared
    step        lets the block go on, and returns its status
    comes_back  see the module `comes_back`, for a warp
    """

    def __init__(
        self,
        program: Program,
        buffers: Buffers,
        budget: int,
        state: BlockState | None,
        step: Callable[[], int],
        comes_back: Callable[[int], int],
    ) -> None:
        self._program, self._buffers, self._counters = program, buffers, buffers.counters
        self._state, self._step, self._comes_back = state, step, comes_back
        self._budget, self._left, self._mark, self._alone = budget, budget, 0, 0
        self._changing = _changing(program)
        self._lend()

    def _lend(self) -> None:
        part = min(PART, self._left)
        self._left -= part
        self._counters[words.BUDGET_LEFT] = part

    def goes_on(self, block: int, executed: NDArray[np.int64]) -> bool:
        """Lend another part where a block has used up what it had; return whether there was one to lend.

        executed  int64 [instructions]: how often the block has executed each instruction

        Raises Stopped where the warp that runs does what it did before, or has run for too long.
        """
        counters = self._counters
        warp, segments = int(counters[words.FAULT_WARP]), int(counters[words.SEGMENTS])
        ran = self._buffers.segment_warp[max(0, self._mark - 1) : segments]
        self._alone = self._alone + PART if (ran == counters[words.WARP_BASE] + warp).all() else 0
        self._left += int(counters[words.BUDGET_LEFT])
        if self._alone > 0 and self._state is not None:
            parts = self._alone // PART
            look = parts & (parts - 1) == 0
            if look and (steps := self._cycle(self._state, warp, executed) or self._comes_back(warp)):
                raise Stopped(self._never_ends(block, _again(steps)), words.STUCK, block)
        if self._left <= 0:
            counters[words.BUDGET_LEFT] = 0
            return False
        if self._alone * OF_A_WARP >= max(self._budget, PART * OF_A_WARP):
            still = f"is still running after {self._alone:,} instructions (raise --max-instructions if it should)"
            raise Stopped(self._never_ends(block, still), words.BUDGET, block)
        self._lend()
        self._mark = int(counters[words.SEGMENTS])
        return True

    def _never_ends(self, block: int, why: str) -> str:
        program, counters = self._program, self._counters
        instruction = program.instructions[int(counters[words.FAULT_INSTRUCTION])]
        source = program.line_of(instruction)
        line = f", line {source.line} of {source.file}" if source else ""
        where = (
            f"block {block}, warp {counters[words.FAULT_WARP]}, '{instruction.text}' at {instruction.offset:#06x}{line}"
        )
        return f"kernel '{program.name}' never ends: a warp {why} ({where})"

    def _cycle(self, state: BlockState, warp: int, executed: NDArray[np.int64]) -> int:
        """Let the warp go on for at most LONGEST_CYCLE instructions; return after how many of them its state is as at
        first, and nothing that it can read has changed; 0 where that does not happen."""
        counters = self._counters
        first, stored = _of_warp(state, warp), executed[self._changing].sum()
        place = state.warps[warp, [words.PC, words.ACTIVE]]
        for step in range(1, min(LONGEST_CYCLE, self._left) + 1):
            counters[words.BUDGET_LEFT] = 1
            status = self._step()
            self._left -= 1
            if status != words.BUDGET or counters[words.FAULT_WARP] != warp:
                break  # whatever it is, it comes again when the block goes on
            if executed[self._changing].sum() != stored:
                break
            if (state.warps[warp, [words.PC, words.ACTIVE]] == place).all() and all(
                np.array_equal(a, b) for a, b in zip(first, _of_warp(state, warp), strict=True)
            ):
                return step
        return 0


def _again(steps: int) -> str:
    return "does the same again " + (f"every {steps} instructions" if steps > 1 else "with every instruction")


def _of_warp(state: BlockState, warp: int) -> tuple[NDArray, ...]:
    """Return copies of what decides how a warp goes on, but for global memory."""
    warps, registers, shared, local, barriers = state.snapshot()
    return warps[warp], registers[warp], shared, local[warp], barriers


@cached_by_identity(8)
def _changing(program: Program) -> NDArray[np.bool_]:
    """Return bool [instructions]: whether each may change what a warp reads besides its registers."""
    rows = [row_of(instruction) for instruction in program.instructions]
    return np.array([row.memory is not None and row.memory.operation != "ld" for row in rows], np.bool_)
