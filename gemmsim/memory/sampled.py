"""L1 and L2 of a launch of which only some blocks were executed.

L1: each executed block is replayed together with the blocks that would be resident on its SM, and after those of a
neighbouring wave; they make the same accesses, moved to where they would make them. L2: see `footprint.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.coalescer import SECTOR_BYTES
from gemmsim.memory.shifts import Shifts, coordinates
from gemmsim.memory.streams import Residents
from gemmsim.trace.types import Launch, WarpTrace

_APART_BYTES = 1 << 42  # blocks whose addresses are unknown are put this far apart: what they touch is apart


def residents_of_sample(
    trace: WarpTrace, launch: Launch, shifts: Shifts, sms: int, resident_blocks_per_sm: int
) -> Residents:
    """Two groups for each executed block, on an L1 of their own: a neighbouring wave, then the block's own wave.

    All members of the latter count: which of the blocks that share a line comes first is as good as chance.
    """
    sm, start, block, counts = [], [0], [], []
    shift: list[NDArray[np.int64]] = []
    at = coordinates(np.arange(launch.blocks), launch.grid)
    waves = -(-launch.blocks // (sms * resident_blocks_per_sm))
    for index, number in enumerate(trace.blocks.tolist()):
        wave = number // sms // resident_blocks_per_sm
        before = wave - 1 if wave else min(1, waves - 1)  # the first wave finds L1 cold, most blocks do not
        for group in (before, wave) if before != wave else (wave,):
            first = number % sms + sms * group * resident_blocks_per_sm
            for mate in range(first, min(launch.blocks, first + sms * resident_blocks_per_sm), sms):
                by = shifts.between(at[mate] - at[number])
                apart = np.full(trace.executed.shape[1], _APART_BYTES * (1 + len(shift)), np.int64)
                shift.append((apart if by is None else by) // SECTOR_BYTES)
                block.append(index)
                counts.append(group == wave)
            sm.append(index)
            start.append(len(block))
    return Residents(
        sm=np.array(sm, np.int64),
        start=np.array(start, np.int64),
        block=np.array(block, np.int64),
        moved=np.arange(len(shift)),
        counts=np.array(counts, bool),
        shift=np.array(shift, np.int64),
    )


def spread(amount: NDArray[np.float64], pc: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Whole numbers whose sum follows that of `amount`, float64 [n], along the accesses of each instruction.

    pc int32 [n]. No number is further than one from its amount; amounts that are whole numbers stay as they are.
    """
    order = np.argsort(pc, kind="stable")
    ends = np.flatnonzero(np.diff(pc[order], append=-1))
    total = np.cumsum(amount[order])
    before = np.repeat(np.concatenate([[0.0], total[ends[:-1]]]), np.diff(ends, prepend=-1)) if len(ends) else total
    whole = np.floor(total - before + 1e-6)
    step = np.diff(whole, prepend=0.0)
    step[ends[:-1] + 1] = whole[ends[:-1] + 1]
    out = np.zeros(len(amount), np.uint16)
    out[order] = step
    return out
