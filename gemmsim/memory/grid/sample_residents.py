"""Which blocks share an SM, and when, in a launch of which only some blocks were executed.

Each executed block is taken for every block of groups that are resident together somewhere on the GPU, after those
of the generation before on that SM; they make the same accesses, moved to where they would make them. Groups are drawn
evenly from the grid. Those in which the same members share the same data are replayed once for all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.block_steps import BlockSteps, coordinates
from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.grid.residents import ResidentGroups, phase_of
from gemmsim.memory.requests.coalescer import SECTOR_BYTES
from gemmsim.support.sorting import distinct_rows
from gemmsim.trace.types import Launch, WarpTrace

_MEMBERS = 64  # blocks in the groups drawn, at least
_LOOKUPS = 10_000_000  # of lines in L1, that are worth their time: about half a second
_APART_BYTES = 1 << 42  # blocks whose addresses are unknown are put this far apart: what they touch is apart


def residents_of_sample(
    trace: WarpTrace,
    launch: Launch,
    steps: BlockSteps,
    placement: Placement,
    resident_blocks_per_sm: int,
    lookups: NDArray[np.int64],
) -> ResidentGroups:
    """For each group drawn, two groups on an L1 of their own: the generation before, then its own.

    All members of the latter count: which of the blocks that share a line comes first is as good as chance. The block
    of the largest weight stands in for as many of the groups as _LOOKUPS allows, the most frequent ones first; each of
    the others for one.

    lookups  int64 [blocks] lines that each executed block looks up
    """
    drawn = _draw(launch, steps, placement, resident_blocks_per_sm)
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
                    by = steps.bytes_between(at[mate] - at[number])
                    apart = np.full(trace.executed.shape[1], _APART_BYTES * (1 + len(shift)), np.int64)
                    shift.append((apart if by is None else by) // SECTOR_BYTES)
                    block.append(index)
                    times.append(often if group == generation else 0)
                    phase.append(float(phase_of(np.array([mate]), np.array([group]))[0]))
                sm.append(len(sm) if group == before else sm[-1])
                start.append(len(block))
    return ResidentGroups(
        sm=np.array(sm, np.int64),
        start=np.array(start, np.int64),
        block=np.array(block, np.int64),
        moved=np.arange(len(shift)),
        times=np.array(times, np.int64),
        phase=np.array(phase, np.float64),
        shift=np.array(shift, np.int64),
    )


def _draw(
    launch: Launch, steps: BlockSteps, placement: Placement, resident_blocks_per_sm: int
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
    moves = distinct_rows(steps.step_bytes.T)  # instructions that move together
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
