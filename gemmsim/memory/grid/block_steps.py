"""Finds how a block's addresses follow from another's: the step of each instruction along each grid axis.

Two executed blocks that are neighbours along an axis, or further apart, may have made the same requests except that the
addresses of each instruction differ by a constant. Then the addresses of blocks that were not executed are known too,
as long as these make the same requests: they are those of an executed block, moved.
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
    """How far addresses move from a block to the next.

    step_bytes  int64 [3, instructions] bytes for one step along x, y and z
    known       for each axis, whether its steps are known; an axis along which the grid has one block counts as known
    """

    step_bytes: NDArray[np.int64]
    known: tuple[bool, bool, bool]

    def bytes_between(self, steps: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the bytes by which `steps` (x, y, z) move the addresses of each instruction: int64 [instructions].

        None where they move along an axis whose steps are not known.
        """
        if any(step and not known for step, known in zip(steps.tolist(), self.known, strict=True)):
            return None
        return steps @ self.step_bytes


def coordinates(blocks: NDArray[np.int64], grid: tuple[int, int, int]) -> NDArray[np.int64]:
    """Return the coordinates (x, y, z) in the grid of blocks with these linear ids: int64 [n, 3]."""
    gx, gy, _ = grid
    return np.stack([blocks % gx, blocks // gx % gy, blocks // (gx * gy)], axis=1)


def block_steps_of(trace: WarpTrace, launch: Launch, requests: L1Requests) -> BlockSteps:
    """Return the steps that can be found from the executed blocks. `requests` are the requests of the whole trace."""
    at = coordinates(trace.blocks, launch.grid)
    top = np.iinfo(np.int64).max
    active = active_lanes(trace.patterns.active_mask)
    lowest = np.where(active, trace.patterns.offsets_bytes, top).min(axis=1, initial=top)
    address = trace.record_base[requests.record].astype(np.int64) + lowest[trace.record_pattern[requests.record]]
    step_bytes = np.zeros((3, trace.executed.shape[1]), np.int64)
    known = [extent == 1 for extent in launch.grid]
    for axis in (a for a in range(3) if not known[a]):
        for first, second in _neighbours(at, axis):
            difference = _difference(requests, address, first, second, trace.executed.shape[1])
            distance = int(at[second, axis] - at[first, axis])
            if difference is not None and not (difference % distance).any():
                step_bytes[axis], known[axis] = difference // distance, True
                break
    return BlockSteps(step_bytes, (known[0], known[1], known[2]))


def _neighbours(at: NDArray[np.int64], axis: int) -> list[tuple[int, int]]:
    """Return pairs of executed blocks that differ along `axis` only, the nearest pairs first.

    at  int64 [executed blocks, 3] coordinates of each block in the grid
    """
    rows = sorted(range(len(at)), key=lambda i: (*np.delete(at[i], axis).tolist(), int(at[i, axis])))
    pairs = [(a, b) for a, b in pairwise(rows) if (np.delete(at[a] - at[b], axis) == 0).all()]
    return sorted(pairs, key=lambda p: int(at[p[1], axis] - at[p[0], axis]))


def _difference(
    requests: L1Requests, address: NDArray[np.int64], first: int, second: int, instructions: int
) -> NDArray[np.int64] | None:
    """Return how many bytes the addresses of block `second` are from those of block `first`: int64 [instructions].

    None where the two do not make the same requests, or where the difference is not constant.

    address  int64 [requests] lowest address of each request
    """
    w = requests.warps_per_block
    a, b = (slice(requests.start[i * w], requests.start[(i + 1) * w]) for i in (first, second))
    lengths = np.diff(requests.start)
    if not np.array_equal(lengths[first * w : (first + 1) * w], lengths[second * w : (second + 1) * w]):
        return None
    if not np.array_equal(requests.pc[a], requests.pc[b]):
        return None
    found = np.zeros(instructions, np.int64)
    found[requests.pc[a]] = address[b] - address[a]
    return found if np.array_equal(found[requests.pc[a]], address[b] - address[a]) else None
