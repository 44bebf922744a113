"""How a block's addresses follow from another's: the step of each instruction along each grid axis.

Where two executed blocks that are neighbours along an axis (or further apart) ran the same accesses, each instruction's
addresses may differ by one constant. Then the addresses of blocks that were not executed are known, as long as they run
the same accesses: they are those of an executed block, moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.trace.types import Launch, WarpTrace, active_lanes


@dataclass(frozen=True)
class BlockSteps:
    """step_bytes: int64 [3, instructions] a step along x, y, z; known: which axes are known, or have one block only."""

    step_bytes: NDArray[np.int64]
    known: tuple[bool, bool, bool]

    def bytes_between(self, steps: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """int64 [instructions] bytes that `steps` (x, y, z) move addresses; None where an axis in use is unknown."""
        if any(step and not known for step, known in zip(steps.tolist(), self.known, strict=True)):
            return None
        return steps @ self.step_bytes


def coordinates(blocks: NDArray[np.int64], grid: tuple[int, int, int]) -> NDArray[np.int64]:
    """int64 [n, 3] (x, y, z) of linear block ids."""
    gx, gy, _ = grid
    return np.stack([blocks % gx, blocks // gx % gy, blocks // (gx * gy)], axis=1)


def block_steps_of(trace: WarpTrace, launch: Launch, requests: L1Requests) -> BlockSteps:
    """What the executed blocks show."""
    at = coordinates(trace.blocks, launch.grid)
    lowest = np.where(
        active_lanes(trace.patterns.active_mask),
        trace.patterns.offsets_bytes,
        np.iinfo(np.int64).max,
    ).min(axis=1, initial=np.iinfo(np.int64).max)
    address = trace.record_base[requests.record].astype(np.int64) + lowest[trace.record_pattern[requests.record]]
    step_bytes = np.zeros((3, trace.executed.shape[1]), np.int64)
    known = [extent == 1 for extent in launch.grid]
    for axis in (a for a in range(3) if not known[a]):
        for first, second in _neighbours(at, axis):
            step = _step(trace, requests, address, first, second, int(at[second, axis] - at[first, axis]))
            if step is not None:
                step_bytes[axis], known[axis] = step, True
                break
    return BlockSteps(step_bytes, (known[0], known[1], known[2]))


def _neighbours(at: NDArray[np.int64], axis: int) -> list[tuple[int, int]]:
    """Pairs of executed blocks that differ along `axis` only, the nearest pairs first."""
    rows = sorted(range(len(at)), key=lambda i: (*np.delete(at[i], axis).tolist(), int(at[i, axis])))
    pairs = [(a, b) for a, b in pairwise(rows) if (np.delete(at[a] - at[b], axis) == 0).all()]
    return sorted(pairs, key=lambda p: int(at[p[1], axis] - at[p[0], axis]))


def _step(
    trace: WarpTrace, requests: L1Requests, address: NDArray[np.int64], first: int, second: int, distance: int
) -> NDArray[np.int64] | None:
    """int64 [instructions] bytes a step between two blocks `distance` apart; None where they do not run alike."""
    w = trace.warps_per_block
    a, b = (slice(requests.start[i * w], requests.start[(i + 1) * w]) for i in (first, second))
    lengths = np.diff(requests.start)
    if not np.array_equal(lengths[first * w : (first + 1) * w], lengths[second * w : (second + 1) * w]):
        return None
    if not np.array_equal(requests.pc[a], requests.pc[b]):
        return None
    moved = np.zeros(trace.executed.shape[1], np.int64)
    moved[requests.pc[a]] = address[b] - address[a]
    if not np.array_equal(moved[requests.pc[a]], address[b] - address[a]) or (moved % distance).any():
        return None
    return moved // distance
