"""Divides the blocks of a grid into classes of blocks that do the same at other addresses (`trace.differences`).

Nothing is assumed about how a kernel maps blocks to its work: one block of each class, its leader, is executed, and
what the others of the class do is known from it.

Where an atomic instruction returns what it found, a block may depend on those before it (the last block of a tile to
arrive collects the sums of all). Then columns are compared: a column is the blocks of one place in x and y, all along
z, which run in order. That is right if each column has words of its own for its atomics, which is checked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words
from gemmsim.trace.differences.leader import BlockClass, relate
from gemmsim.trace.execute import Executor
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Launch, Relation, WarpTrace

# Warp instructions that the leaders of all classes may execute together; it takes about ten seconds.
_MOST_INSTRUCTIONS = 120_000_000
# A leader that is stuck may wait for another block.
_GIVEN_UP = (words.UNRELATED, words.STALE, words.BUDGET, words.STUCK)
_FEW_CLASSES, _MOST_CLASSES = 4, 256  # so few classes may execute more, since nothing less would do


def classes_of(executor: Executor) -> tuple[BlockClass, ...] | None:
    """Return the classes of all blocks, or None where they are too many, or where a block depends on others."""
    launch = executor.launch
    return _classes(executor, np.arange(launch.blocks)[:, None], middle(launch.grid))


def column_classes_of(executor: Executor) -> tuple[BlockClass, ...] | None:
    """Return the classes of all blocks as `classes_of` does, where the blocks of a column depend on one another.

    A column that stands for others does so at each place along z: its blocks lead classes with the same columns.
    """
    gx, gy, gz = executor.launch.grid
    return _classes(executor, np.arange(gx * gy * gz).reshape(gz, -1).T, middle((gx, gy, 1)), in_columns=True)


def cluster_classes_of(executor: Executor) -> tuple[BlockClass, ...] | None:
    """Return the classes of all blocks as `classes_of` does, where the blocks of a cluster meet.

    A cluster that stands for others does so with each of its blocks: these lead classes with the same clusters. Each
    leader runs alone, because a trace slice needs nothing that another block has stored. Where it does need that, the
    executor stops, and no classes are found.
    """
    clusters = executor.clusters
    first = int(clusters.places(np.array([middle(executor.launch.grid)]))[0][0])
    members = clusters.members(np.arange(executor.launch.blocks // clusters.blocks))
    try:
        return _classes(executor, members, first)
    except Stopped:  # what a block waits for may come from another one; if it is a fault, all blocks show it
        return None


def _classes(
    executor: Executor, blocks: NDArray[np.int64], leader: int, in_columns: bool = False
) -> tuple[BlockClass, ...] | None:
    """Return the classes of blocks that come in groups; None where they are too many, or where one cannot be found.

    blocks      int64 [groups, places]: the blocks of each group. At all places classes have the same groups.
    leader      number of the group whose blocks lead the first classes
    in_columns  whether the blocks of a group depend on one another in this order (`relate`)
    """
    groups, places = blocks.shape
    group_of = np.empty(blocks.size, np.int64)
    group_of[blocks] = np.arange(groups)[:, None]
    found: list[BlockClass] = []
    left, instructions = np.arange(groups), 0
    while len(left):
        alike, level = left, []
        try:
            for place in range(places):
                others = blocks[alike, place]
                level.append(relate(executor, int(blocks[leader, place]), others, place if in_columns else None))
                alike = np.sort(group_of[level[place].members])
        except Stopped as stopped:
            if stopped.status in _GIVEN_UP:
                return None
            raise
        if places > 1:  # what one place drops leaves the places before it, too
            level = [one.among(blocks[alike, place]) for place, one in enumerate(level)]
        found += level
        left = np.setdiff1d(left, alike, assume_unique=True)
        instructions += sum(int(c.executed.sum()) - executor.cutting.left_out_of(c.leader) for c in level)
        if len(left):
            leader = int(left[len(left) // 2])
            if _too_many(len(found), instructions):
                return None
    return tuple(found)


def _too_many(classes: int, instructions: int) -> bool:
    """Whether so many classes have been found, whose leaders execute so many warp instructions, that it is given up."""
    return classes >= _MOST_CLASSES or (classes > _FEW_CLASSES and instructions > _MOST_INSTRUCTIONS)


def middle(grid: tuple[int, int, int]) -> int:
    """Return a block that is at no edge of the grid, along each axis where there is such a place."""
    x, y, z = (min(1, n - 1) for n in grid)
    return x + grid[0] * (y + grid[1] * z)


def with_relation(trace: WarpTrace, launch: Launch, classes: tuple[BlockClass, ...]) -> WarpTrace:
    """Return the trace of the leaders of `classes` with the relation of all blocks to them."""
    by_leader = {c.leader: c for c in classes}
    ordered = [by_leader[block] for block in trace.blocks.tolist()]
    like = np.zeros(launch.blocks, np.int64)
    offset_bytes = np.zeros((max(len(c.offset_bytes) for c in ordered), launch.blocks), np.int64)
    for number, c in enumerate(ordered):
        like[c.members] = number
        offset_bytes[: len(c.offset_bytes), c.members] = c.offset_bytes
    movers = np.concatenate([c.record_mover for c in ordered])
    assert len(movers) == len(trace.record_pc), "a leader and its execution have different records"
    threads = sum((c.threads for c in ordered), np.zeros(trace.executed.shape[1], np.int64))
    return replace(trace, relation=Relation(like, movers, offset_bytes, threads, any(c.data_decides for c in ordered)))


def leaders_of(classes: tuple[BlockClass, ...]) -> dict[int, float]:
    """Return {leader: how many blocks its class has}."""
    return {c.leader: float(len(c.members)) for c in classes}
