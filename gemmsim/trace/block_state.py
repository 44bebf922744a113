"""Holds the state of one block that is being executed: its registers, shared and local memory, warps and barriers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import words
from gemmsim.trace.sanitizer.shadow_state import BlockShadow


class BlockState:
    """The arrays that the compiled executor works on for one block.

    registers  uint32 [warps, words of a warp's rows]
    shared     uint32, the block's shared memory
    local      uint32 [warps, words of a thread's stack, 32]
    warps      int64 [warps, words.WARP_WORDS]
    barriers   int64, the block's barriers, the outcome of the last reduction, and its part of the cluster's barrier
    polls      uint64 [warps, memory operations], for `gemmsim.trace.engine.polling`
    phases     int32 [shared bytes / 8], how many phases an mbarrier at each place has completed
    shadow     what the sanitizer remembers of the block; None without it
    """

    def __init__(
        self,
        initial: NDArray[np.uint32],
        shared_bytes: int,
        stack_bytes: int,
        accesses: int,
        shadow: BlockShadow | None = None,
    ) -> None:
        warps = len(initial)
        self.registers = initial.copy()
        self.shared = np.zeros(shared_bytes // 4, np.uint32)
        self.local = np.zeros((warps, stack_bytes // 4, WARP_LANES), np.uint32)
        self.warps = np.zeros((warps, words.WARP_WORDS), np.int64)
        self.barriers = np.zeros(words.BARRIERS_WORDS, np.int64)
        self.polls = np.zeros((warps, max(accesses, 1)), np.uint64)
        self.phases = np.zeros(shared_bytes // 8, np.int32)
        self.shadow = shadow

    def begin(self, initial: NDArray[np.uint32], position: dict[int, int], alive: NDArray[np.int64], rank: int) -> None:
        """Make the state that of a block that has not run yet.

        initial   the registers at the beginning of any block, as `registers`
        position  {row: the word that fills it} of the rows that hold the block's place in the grid
        alive     int64 [warps]: the mask of each warp's threads
        rank      of the block in its cluster
        """
        self.registers[:] = initial
        rows = self.registers.reshape(len(initial), -1, WARP_LANES)
        for row, word in position.items():
            rows[:, row] = word
        self.shared[:] = 0
        self.warps[:] = 0
        self.warps[:, words.ACTIVE] = self.warps[:, words.ALIVE] = alive
        self.barriers[:] = 0
        self.polls[:] = 0
        self.phases[:] = 0
        if self.shadow:
            self.shadow.begin(rank)

    def addresses(self) -> dict[int, int]:
        """Return for each word of the context that names one of these arrays the array's address."""
        arrays: dict[int, NDArray] = {
            words.REGISTERS_AT: self.registers,
            words.WARPS_AT: self.warps,
            words.BARRIERS_AT: self.barriers,
            words.SHARED_AT: self.shared,
            words.LOCAL_AT: self.local,
            words.POLLS_AT: self.polls,
            words.PHASES_AT: self.phases,
        }
        found = {slot: array.ctypes.data for slot, array in arrays.items()}
        return found | self.shadow.addresses() if self.shadow else found

    def snapshot(self) -> tuple[NDArray, ...]:
        """Return copies of what decides how the block goes on. Where two are equal, the block is where it was."""
        deciding = [n for n in range(words.WARP_WORDS) if n not in (words.MEETINGS, words.LAST_MET)]
        return (
            self.warps[:, deciding],
            self.registers.copy(),
            self.shared.copy(),
            self.local.copy(),
            self.barriers.copy(),
        )
