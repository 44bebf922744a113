"""Finds which blocks share an SM, and when, in a launch of which only some blocks were executed.

Groups of blocks that are resident together are drawn evenly from the grid. An executed block stands in for every member
of such a group: each member makes the same requests, moved to where that member would make them. The group of the
generation before on the same SM runs first, on an L1 that is empty. Groups in which the same members share the same
data are replayed once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.block_steps import BlockSteps, coordinates
from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.grid.residents import ResidentGroups, phase_of
from gemmsim.memory.requests.coalescer import SECTOR_BYTES
from gemmsim.support.sorting import distinct_rows, new_rows
from gemmsim.trace.types import Launch

_DRAWN_BLOCKS = 64  # at least as many blocks are in the groups that are drawn
_MAX_LOOKUPS = 10_000_000  # look-ups of lines in L1, which take about half a second
_APART_BYTES = 1 << 42  # blocks whose addresses are not known are put this far apart, so that they share no data


@dataclass(frozen=True)
class SampledBlocks:
    """The executed blocks that count: those that stand for blocks of the grid.

    blocks  int64 [blocks] linear ids
    weight  float64 [blocks] how many blocks of the grid each stands for
    lines   int64 [blocks] lines that each looks up in L1
    """

    blocks: NDArray[np.int64]
    weight: NDArray[np.float64]
    lines: NDArray[np.int64]


@dataclass(frozen=True)
class _Group:
    """A group of blocks that was drawn: those that are resident on SM `sm` in generation `generation`.

    times  how many of the drawn groups this one stands for, itself included
    """

    sm: int
    generation: int
    times: int


def residents_of_sample(
    sample: SampledBlocks, launch: Launch, steps: BlockSteps, placement: Placement, resident_blocks_per_sm: int
) -> ResidentGroups:
    """Return, for each group drawn, two groups that share an empty L1: that of the generation before, then itself.

    All members of the group itself count, because which of the blocks that share a line comes first is as good as
    chance. The executed block of the largest weight stands in for the members of as many drawn groups as _MAX_LOOKUPS
    allows, the most frequent groups first. Every other executed block stands in for those of one.
    """
    drawn = _draw(launch, steps, placement, resident_blocks_per_sm)
    heaviest = int(np.argmax(sample.weight))
    affordable = int(_MAX_LOOKUPS // (2 * resident_blocks_per_sm * max(int(sample.lines[heaviest]), 1)))
    sm: list[int] = []
    start, block, times, phase = [0], [], [], []
    offset_bytes: list[NDArray[np.int64]] = []
    at = coordinates(np.arange(launch.blocks), launch.grid)
    last = int(placement.generation[-1])
    for index, number in enumerate(sample.blocks.tolist()):
        for group in drawn[: max(affordable, 1) if index == heaviest else 1]:
            # The first generation finds L1 empty, but most blocks do not.
            before = group.generation - 1 if group.generation else min(1, last)
            generations = (before, group.generation) if before != group.generation else (group.generation,)
            for generation in generations:
                for member in placement.group(group.sm, generation).tolist():
                    apart = np.full(steps.step_bytes.shape[1], _APART_BYTES * (1 + len(offset_bytes)), np.int64)
                    known = steps.bytes_between(at[member] - at[number])
                    offset_bytes.append(apart if known is None else known)
                    block.append(index)
                    times.append(group.times if generation == group.generation else 0)
                    phase.append(float(phase_of(np.array([member]), np.array([generation]))[0]))
                sm.append(len(sm) if generation == before else sm[-1])
                start.append(len(block))
    return ResidentGroups(
        sm=np.array(sm, np.int64),
        start=np.array(start, np.int64),
        block=np.array(block, np.int64),
        offset_row=np.arange(len(block)),
        times=np.array(times, np.int64),
        phase=np.array(phase, np.float64),
        offset_sectors=np.array(offset_bytes, np.int64) // SECTOR_BYTES,
    )


def _draw(launch: Launch, steps: BlockSteps, placement: Placement, resident_blocks_per_sm: int) -> list[_Group]:
    """Draw groups that are spread evenly over the grid, and return one of each kind: those that stand for the most
    blocks come first.
    """
    order = np.lexsort((np.arange(launch.blocks), placement.sm, placement.generation))
    sm, generation = placement.sm[order], placement.generation[order]
    first = np.flatnonzero(new_rows(sm, generation))
    wanted = min(len(first), -(-_DRAWN_BLOCKS // resident_blocks_per_sm))
    chosen = (np.arange(wanted) * len(first) + len(first) // 2) // wanted
    ends = np.append(first[1:], launch.blocks)
    moves = distinct_rows(steps.step_bytes.T)  # one row for all instructions that move together
    at = coordinates(np.arange(launch.blocks), launch.grid)
    found: dict[tuple[int, ...], _Group] = {}
    for g in chosen.tolist():
        members = np.sort(order[first[g] : ends[g]])
        # Which members find their data where another member does, for each row of `moves`.
        sharing = tuple(
            int(label)
            for move in (at[members] @ moves.T).T
            for label in np.unique(np.concatenate([[move[0]], move]), return_inverse=True)[1]
        )
        here = _Group(int(placement.sm[members[0]]), int(placement.generation[members[0]]), 0)
        group = found.get(sharing, here)
        found[sharing] = replace(group, times=group.times + 1)
    # The length of `sharing` grows with the number of members.
    return [found[sharing] for sharing in sorted(found, key=lambda sharing: -found[sharing].times * len(sharing))]
