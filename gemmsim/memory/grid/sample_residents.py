"""Finds which blocks share an SM, and when, in a launch of which only some blocks were executed.

Groups of blocks that are resident together are drawn evenly from the grid. Each member of such a group makes the
requests of the executed block that it is like, moved to where the member makes them. The group of the generation before
on the same SM runs first, on an L1 that is empty. Groups in which the same members share the same data are replayed
once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.grid.residents import ResidentGroups, phase_of
from gemmsim.memory.requests.coalescer import SECTOR_BYTES
from gemmsim.support.sorting import new_rows
from gemmsim.trace.types import Relation

_DRAWN_BLOCKS = 64  # at least as many blocks are in the groups that are drawn
_MAX_LOOKUPS = 10_000_000  # look-ups of lines in L1, which take about half a second


@dataclass(frozen=True)
class SampledBlocks:
    """The executed blocks that count: those that stand for blocks of the grid.

    blocks  int64 [blocks] linear ids
    weight  float64 [blocks] how many blocks of the grid each stands for
    lines   int64 [blocks] lines that each looks up in L1
    cut     whether iterations of their loops were left out. What goes through L1 in these leaves nothing of what the
            generation before had there
    """

    blocks: NDArray[np.int64]
    weight: NDArray[np.float64]
    lines: NDArray[np.int64]
    cut: bool = False


@dataclass(frozen=True)
class _Group:
    """A group of blocks that was drawn: those that are resident on SM `sm` in generation `generation`.

    times  how many of the drawn groups this one stands for, itself included
    """

    sm: int
    generation: int
    times: int


def residents_of_sample(sample: SampledBlocks, relation: Relation, placement: Placement) -> ResidentGroups:
    """Return, for each group drawn, two groups that share an empty L1: that of the generation before, then itself.

    All members of the group itself count, because which of the blocks that share a line comes first is as good as
    chance. As many drawn groups are replayed as _MAX_LOOKUPS allows, the most frequent ones first. An executed block
    that is in none of them is replayed in its own group.
    """
    heaviest = int(np.argmax(sample.weight))
    affordable = int(_MAX_LOOKUPS // (2 * placement.resident_blocks_per_sm * max(int(sample.lines[heaviest]), 1)))
    drawn = _draw(relation, placement)
    drawn = drawn[:affordable] if affordable > 1 else _commonest_size(drawn, placement)[:1]
    seen = {int(relation.like[b]) for group in drawn for b in placement.group(group.sm, group.generation).tolist()}
    rest = [number for number in range(len(sample.blocks)) if number not in seen]
    groups = [(group, -1) for group in drawn] + [(_group_of(placement, int(sample.blocks[n])), n) for n in rest]
    sm: list[int] = []
    start, member_ids, times, phase = [0], [], [], []
    last = int(placement.generation[-1])
    for group, only in groups:
        # The first generation finds L1 empty, but most blocks do not.
        before = group.generation - 1 if group.generation else min(1, last)
        alone = sample.cut or before == group.generation
        generations = (group.generation,) if alone else (before, group.generation)
        for generation in generations:
            for member in placement.group(group.sm, generation).tolist():
                counts = generation == group.generation and only in (-1, relation.like[member])
                member_ids.append(member)
                times.append(group.times if counts else 0)
                phase.append(float(phase_of(np.array([member]), np.array([generation]))[0]))
            sm.append(len(sm) if generation == generations[0] else sm[-1])
            start.append(len(member_ids))
    members = np.array(member_ids, np.int64)
    return ResidentGroups(
        sm=np.array(sm, np.int64),
        start=np.array(start, np.int64),
        block=relation.like[members],
        offset_row=np.arange(len(members)),
        times=np.array(times, np.int64),
        phase=np.array(phase, np.float64),
        offset_sectors=np.ascontiguousarray(relation.offset_bytes[:, members].T) // SECTOR_BYTES,
    )


def _commonest_size(groups: list[_Group], placement: Placement) -> list[_Group]:
    """Return the groups with as many members as the group that most blocks are in. One of them can stand for all: in a
    generation that does not fill the GPU fewer blocks share an SM and its L1.
    """
    size = np.array([len(placement.group(group.sm, group.generation)) for group in groups])
    blocks = np.bincount(size, size * np.array([group.times for group in groups]))
    return [group for group, members in zip(groups, size.tolist(), strict=True) if members == int(blocks.argmax())]


def _group_of(placement: Placement, block: int) -> _Group:
    return _Group(int(placement.sm[block]), int(placement.generation[block]), 1)


def _draw(relation: Relation, placement: Placement) -> list[_Group]:
    """Draw groups that are spread evenly over the grid, and return one of each kind: those that stand for the most
    blocks come first.
    """
    blocks = len(relation.like)
    order = np.lexsort((np.arange(blocks), placement.sm, placement.generation))
    sm, generation = placement.sm[order], placement.generation[order]
    first = np.flatnonzero(new_rows(sm, generation))
    wanted = min(len(first), -(-_DRAWN_BLOCKS // placement.resident_blocks_per_sm))
    chosen = (np.arange(wanted) * len(first) + len(first) // 2) // wanted
    ends = np.append(first[1:], blocks)
    found: dict[tuple[int, ...], _Group] = {}
    for g in chosen.tolist():
        members = np.sort(order[first[g] : ends[g]])
        like = relation.like[members]
        # Which members are like which executed block, and find their data where another member does, for each mover.
        sharing = tuple(like.tolist()) + tuple(
            int(label)
            for moved in relation.offset_bytes[:, members]
            for label in np.unique(np.concatenate([[moved[0]], moved]), return_inverse=True)[1]
        )
        here = _Group(int(placement.sm[members[0]]), int(placement.generation[members[0]]), 0)
        group = found.get(sharing, here)
        found[sharing] = replace(group, times=group.times + 1)
    # The length of `sharing` grows with the number of members.
    return [found[sharing] for sharing in sorted(found, key=lambda sharing: -found[sharing].times * len(sharing))]
