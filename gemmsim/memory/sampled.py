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


def passes(pc: NDArray[np.int32], start: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often its warp has executed the instruction of each access before: int64 [n]. Arguments as of `together`."""
    warp = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.lexsort((pc, warp))
    new = np.ones(len(pc), bool)
    new[1:] = (np.diff(pc[order]) != 0) | (np.diff(warp[order]) != 0)
    first = np.flatnonzero(new)
    time = np.empty(len(pc), np.int64)
    time[order] = np.arange(len(pc)) - np.repeat(first, np.diff(first, append=len(pc)))
    return time


def together(
    sectors: NDArray[np.int64],
    share: NDArray[np.float64],
    pc: NDArray[np.int32],
    start: NDArray[np.int64],
    warps_per_block: int,
) -> NDArray[np.uint16]:
    """Which of the sectors that accesses ask for come from DRAM, where `share` of those of each instruction do.

    The warps of a block that execute an instruction for the n-th time read neighbouring parts of one tile, and the
    first block that reads it brings it to L2 for the others: all of them wait for DRAM, or none.

    sectors  int64 [n] that each access asks L2 for; share float64 [instructions]; pc int32 [n]; start int64 [warps + 1]
    """
    if not len(pc):
        return np.zeros(0, np.uint16)
    warp = np.repeat(np.arange(len(start) - 1), np.diff(start))
    time = passes(pc, start)
    new = np.ones(len(pc), bool)
    order = np.lexsort((time, warp // warps_per_block, pc))
    new[1:] = (np.diff(pc[order]) != 0) | (np.diff(time[order]) != 0) | (np.diff((warp // warps_per_block)[order]) != 0)
    tile = np.empty(len(pc), np.int64)
    tile[order] = np.cumsum(new) - 1
    size = np.bincount(tile, sectors)
    tile_pc = pc[order][new]
    wanted = size * share[tile_pc]
    total = np.cumsum(wanted)
    begin = np.flatnonzero(np.diff(tile_pc, prepend=-1))
    total -= np.repeat(total[begin] - wanted[begin], np.diff(begin, append=len(tile_pc)))  # anew for each instruction
    whole = np.maximum(size, 1.0)
    chosen = np.floor(total / whole + 0.5 + 1e-9) > np.floor((total - wanted) / whole + 0.5 + 1e-9)
    return np.where(chosen[tile], sectors, 0).astype(np.uint16)
