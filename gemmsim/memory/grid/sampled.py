"""L1 and L2 of a launch of which only some blocks were executed.

L1: each executed block is taken for every block of groups that are resident together somewhere on the GPU, after those
of the generation before on that SM; they make the same accesses, moved to where they would make them. Groups are drawn
evenly from the grid. Those in which the same members share the same data are replayed once for all. L2: see
`footprint.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.accesses import Residents, Streams, phase_of
from gemmsim.memory.grid.block_steps import Shifts, coordinates
from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.loops import engine
from gemmsim.memory.requests.coalescer import SECTOR_BYTES, Coalesced
from gemmsim.support.sorting import distinct_rows, order_by
from gemmsim.trace.types import Launch, WarpTrace

_MEMBERS = 64  # blocks in the groups drawn, at least
_LOOKUPS = 10_000_000  # of lines in L1, that are worth their time: about half a second
_APART_BYTES = 1 << 42  # blocks whose addresses are unknown are put this far apart: what they touch is apart
_count = engine("grid/sampled_loop", "count")


def residents_of_sample(
    trace: WarpTrace,
    launch: Launch,
    shifts: Shifts,
    placement: Placement,
    resident_blocks_per_sm: int,
    lookups: NDArray[np.int64],
) -> Residents:
    """For each group drawn, two groups on an L1 of their own: the generation before, then its own.

    All members of the latter count: which of the blocks that share a line comes first is as good as chance. The block
    of the largest weight stands in for as many of the groups as _LOOKUPS allows, the most frequent ones first; each of
    the others for one.

    lookups  int64 [blocks] lines that each executed block looks up
    """
    drawn = _draw(launch, shifts, placement, resident_blocks_per_sm)
    heaviest = int(np.argmax(trace.weight))
    many = int(_LOOKUPS // (2 * resident_blocks_per_sm * max(int(lookups[heaviest]), 1)))
    sm: list[int] = []
    start, block, times, phase = [0], [], [], []
    shift: list[NDArray[np.int64]] = []
    at = coordinates(np.arange(launch.blocks), launch.grid)
    last = int(placement.generation[-1])
    for index, number in enumerate(trace.blocks.tolist()):
        for here, generation, often in drawn[: max(many, 1) if index == heaviest else 1]:
            # The first generation finds L1 empty, most blocks do not.
            before = generation - 1 if generation else min(1, last)
            for group in (before, generation) if before != generation else (generation,):
                for mate in placement.group(here, group).tolist():
                    by = shifts.between(at[mate] - at[number])
                    apart = np.full(trace.executed.shape[1], _APART_BYTES * (1 + len(shift)), np.int64)
                    shift.append((apart if by is None else by) // SECTOR_BYTES)
                    block.append(index)
                    times.append(often if group == generation else 0)
                    phase.append(float(phase_of(np.array([mate]), np.array([group]))[0]))
                sm.append(len(sm) if group == before else sm[-1])
                start.append(len(block))
    return Residents(
        sm=np.array(sm, np.int64),
        start=np.array(start, np.int64),
        block=np.array(block, np.int64),
        moved=np.arange(len(shift)),
        times=np.array(times, np.int64),
        phase=np.array(phase, np.float64),
        shift=np.array(shift, np.int64),
    )


def _draw(
    launch: Launch, shifts: Shifts, placement: Placement, resident_blocks_per_sm: int
) -> list[tuple[int, int, int]]:
    """(SM, generation, how many of the groups drawn are like it) of groups spread over the grid, most blocks first."""
    order = np.lexsort((np.arange(launch.blocks), placement.sm, placement.generation))
    new = np.ones(launch.blocks, bool)
    for column in (placement.sm[order], placement.generation[order]):
        new[1:] &= column[1:] == column[:-1]
    new[1:] = ~new[1:]
    first = np.flatnonzero(new)
    wanted = min(len(first), -(-_MEMBERS // resident_blocks_per_sm))
    chosen = (np.arange(wanted) * len(first) + len(first) // 2) // wanted
    ends = np.append(first[1:], launch.blocks)
    moves = distinct_rows(shifts.step_bytes.T)  # instructions that move together
    at = coordinates(np.arange(launch.blocks), launch.grid)
    found: dict[tuple[int, ...], tuple[int, int, int]] = {}
    for g in chosen.tolist():
        members = np.sort(order[first[g] : ends[g]])
        sharing = tuple(
            int(label)
            for move in (at[members] @ moves.T).T
            for label in np.unique(np.concatenate([[move[0]], move]), return_inverse=True)[1]
        )
        here, generation, often = found.get(
            sharing, (int(placement.sm[members[0]]), int(placement.generation[members[0]]), 0)
        )
        found[sharing] = here, generation, often + 1
    # Those that stand for the most blocks first; of one sharing all have as many.
    return [found[sharing] for sharing in sorted(found, key=lambda sharing: -found[sharing][2] * len(sharing))]


def spread(amount: NDArray[np.float64], pc: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Whole numbers whose sum follows that of `amount`, float64 [n], along the accesses of each instruction.

    pc int32 [n]. No number is further than one from its amount; amounts that are whole numbers stay as they are.
    """
    order = order_by(pc)
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
    time = np.empty(len(pc), np.int64)
    if len(pc):
        _count(pc, start, np.zeros((2, int(pc.max()) + 1), np.int64), time)
    return time


def brought_sectors(
    sectors: NDArray[np.int64], streams: Streams, coalesced: Coalesced, warps_per_block: int, fetch: int
) -> NDArray[np.int64]:
    """What DRAM would be read for each access, if L2 had nothing of it but what the block has asked for before.

    Pieces of `fetch` sectors are read at once, so of a row that a block goes along in steps of a sector every other
    step finds its sector there. An access counts as one that goes on if its first piece was asked for before.

    sectors  int64 [accesses] that each asks L2 for
    """
    if fetch == 1 or not len(sectors):
        return sectors
    offset = coalesced.sector_offset
    rows = np.repeat(np.arange(len(coalesced.sectors)), coalesced.sectors)
    pieces = [
        np.bincount(rows, np.diff(piece + rows * (1 << 40), prepend=-1) != 0, len(coalesced.sectors))
        for piece in ((offset + phase) // fetch for phase in range(fetch))
    ]
    first = streams.sector + offset[coalesced.sector_start[streams.shape]]
    warp = np.repeat(np.arange(len(streams.start) - 1), np.diff(streams.start))
    turn = np.arange(len(sectors)) - streams.start[warp]
    block, piece = warp // warps_per_block, first // fetch
    order = order_by(block, piece, turn)
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(block[order]) != 0) | (np.diff(piece[order]) != 0)
    earliest = np.empty(len(order), np.int64)
    earliest[order] = turn[order][new][np.cumsum(new) - 1]
    whole = np.stack(pieces)[streams.sector % fetch, streams.shape] * fetch / coalesced.sectors[streams.shape]
    return np.where(turn == earliest, np.rint(sectors * whole), 0).astype(np.int64)


def together(
    sectors: NDArray[np.int64],
    share: NDArray[np.float64],
    pc: NDArray[np.int32],
    start: NDArray[np.int64],
    warps_per_block: int,
) -> NDArray[np.uint16]:
    """Which of the sectors that accesses bring to L2 come from DRAM, where `share` of those of each instruction do.

    The warps of a block that execute an instruction for the n-th time read neighbouring parts of one tile, and the
    first block that reads it brings it to L2 for the others: all of them wait for DRAM, or none.

    sectors  int64 [n] that each access may bring; share float64 [instructions]; pc int32 [n]; start int64 [warps + 1]
    """
    if not len(pc):
        return np.zeros(0, np.uint16)
    warp = np.repeat(np.arange(len(start) - 1), np.diff(start))
    time = passes(pc, start)
    new = np.ones(len(pc), bool)
    block = warp // warps_per_block
    order = order_by(pc, block, time)
    new[1:] = (np.diff(pc[order]) != 0) | (np.diff(time[order]) != 0) | (np.diff(block[order]) != 0)
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
