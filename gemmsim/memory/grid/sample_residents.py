"""Finds which blocks share an SM, and when, in a launch of which only some blocks were executed.

Groups of blocks that are resident together are drawn evenly from the grid. Each member of such a group makes the
requests of the executed block that it is like, moved to where the member makes them. Generations before it on the same
SM run first, on an L1 that is empty. Groups in which the same members share the same data are replayed once for all of
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.grid.residents import Residents
from gemmsim.memory.requests.coalescer import SECTOR_BYTES
from gemmsim.support.sorting import new_rows
from gemmsim.trace.types import Relation

_DRAWN_BLOCKS = 64  # at least as many blocks are in the groups that are drawn
_MAX_LOOKUPS = 10_000_000  # look-ups of lines in L1, which take about half a second
_MOST_GENERATIONS_BEFORE = 4


@dataclass(frozen=True)
class SampledBlocks:
    """The executed blocks that count: those that stand for blocks of the grid.

    blocks  int64 [blocks] linear ids
    weight  float64 [blocks] how many blocks of the grid each stands for
    lines   int64 [blocks] lines that each looks up in L1
    cut     whether iterations of their loops were left out. What goes through L1 in these leaves nothing of what
            generations before had there
    """

    blocks: NDArray[np.int64]
    weight: NDArray[np.float64]
    lines: NDArray[np.int64]
    cut: bool = False


@dataclass(frozen=True)
class _Member:
    """A block at a place, which makes the requests of the trace's block number `like` (see `Residents`)."""

    block: int
    like: int
    times: int
    wait: float


@dataclass(frozen=True)
class _Group:
    """A group of blocks that was drawn: those that are resident on SM `sm` in generation `generation`.

    times  how many of the drawn groups this one stands for, itself included
    """

    sm: int
    generation: int
    times: int


def residents_of_sample(
    sample: SampledBlocks, relation: Relation, placement: Placement, l1_lines: int, spread: bool
) -> Residents:
    """Return, for each group drawn, the blocks that run at its places of an SM: those of generations before, the group
    itself, and those of the generation after.

    All members of the group itself count, because which of the blocks that share a line comes first is as good as
    chance. As many drawn groups are replayed as _MAX_LOOKUPS allows, the most frequent ones first. An executed block
    that is in none of them is replayed in its own group.

    l1_lines  lines that L1 has room for: so many generations run before that they look up twice as many
    spread    whether places are spread over the time of a block. What L2 keeps of local memory is replayed for the
              blocks that count alone, so these have to run together
    """
    heaviest = int(np.argmax(sample.weight))
    lookups = placement.resident_blocks_per_sm * max(int(sample.lines[heaviest]), 1)
    before = min(-(-2 * l1_lines // lookups), _MOST_GENERATIONS_BEFORE, int(placement.generation[-1]))
    affordable = int(_MAX_LOOKUPS // ((before + 1.5) * lookups))
    drawn = _draw(relation, placement)
    drawn = drawn[:affordable] if affordable > 1 else _commonest_size(drawn, placement)[:1]
    seen = {int(relation.like[b]) for group in drawn for b in placement.group(group.sm, group.generation).tolist()}
    rest = [number for number in range(len(sample.blocks)) if number not in seen]
    groups = [(group, -1) for group in drawn] + [(_group_of(placement, int(sample.blocks[n])), n) for n in rest]
    first_place, start, members = [0], [0], list[_Member]()
    for group, only in groups:
        for place in _places(group, placement, 0 if sample.cut else before, spread):
            for block, counts, wait in place:
                like = int(relation.like[block])
                counted = counts and only in (-1, like)
                members.append(_Member(block, like, group.times if counted else 0, wait))
            start.append(len(members))
        first_place.append(len(start) - 1)
    ids = np.array([member.block for member in members], np.int64)
    return Residents(
        sm=np.arange(len(groups)),
        first_place=np.array(first_place, np.int64),
        start=np.array(start, np.int64),
        block=np.array([member.like for member in members], np.int64),
        offset_row=np.arange(len(members)),
        times=np.array([member.times for member in members], np.int64),
        wait=np.array([member.wait for member in members]),
        offset_sectors=np.ascontiguousarray(relation.offset_bytes[:, ids].T) // SECTOR_BYTES,
    )


def _places(group: _Group, placement: Placement, before: int, spread: bool) -> list[list[tuple[int, bool, float]]]:
    """Return what runs at each place of the group's SM: blocks, whether each counts, and how long its place waits.

    The first generation begins together with nothing before it; a later one is spread over the time of a block.
    """
    size, generation = placement.resident_blocks_per_sm, group.generation
    last = int(placement.generation[-1])
    earlier = [(generation - 1 - n) % max(last, 1) for n in range(before)][::-1] if generation else []
    runs = [*earlier, generation, *([min(generation + 1, last)] if generation else [])]
    places: list[list[tuple[int, bool, float]]] = [[] for _ in range(size)]
    for number, of in enumerate(runs):
        for place, block in enumerate(placement.group(group.sm, of).tolist()):
            wait = place / size if spread and generation and not places[place] else 0.0
            places[place].append((block, number == len(earlier), wait))
    return [place for place in places if place]


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
        labels = [
            np.unique(np.concatenate([[moved[0]], moved]), return_inverse=True)[1].tolist()
            for moved in relation.offset_bytes[:, members]
        ]
        begins_empty = int(generation[first[g]] == 0)
        sharing = (begins_empty, *like.tolist(), *chain.from_iterable(labels))
        here = _Group(int(placement.sm[members[0]]), int(placement.generation[members[0]]), 0)
        group = found.get(sharing, here)
        found[sharing] = replace(group, times=group.times + 1)
    # The length of `sharing` grows with the number of members.
    return [found[sharing] for sharing in sorted(found, key=lambda sharing: -found[sharing].times * len(sharing))]
