"""Describes a loop at the place where a block was cut, to find this place again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Loop:
    """A loop at the place where it was cut.

    length     instructions after which the stream comes again; the registers do so after one or more of these lengths
    stream     int64 [instructions] of the period before, each with its warp above bit 32
    registers  uint32 [warps, words] there, and `step`, by how much they move in a period
    place      index of a register that moves
    at         instructions that the block had executed when it began the unit
    """

    length: int
    stream: NDArray[np.int64]
    registers: NDArray[np.uint32]
    step: NDArray[np.uint32]
    place: int
    at: int

    def lengths_before(self, registers: NDArray[np.uint32]) -> int | None:
        """Return by how many lengths a loop with these registers is before this place; None where it is elsewhere."""
        moved = self.registers.reshape(-1)[[self.place]] - registers.reshape(-1)[[self.place]]
        lengths = int(moved.view(np.int32)[0]) * (len(self.stream) // self.length)
        step = int(self.step.reshape(-1)[[self.place]].view(np.int32)[0])
        return None if lengths % step else lengths // step

    def until_same(self, stream: NDArray[np.int64]) -> int | None:
        """Return by how many instructions a loop must go on, which has executed `stream`, until it is at this place of
        its length; None where it is another loop."""
        return until_same(self.stream, stream, self.length)


def until_same(known: NDArray[np.int64], stream: NDArray[np.int64], length: int) -> int | None:
    """Return by how many instructions a loop that has executed `stream` must go on until it is where it was behind
    `known`; None where it is another loop.

    known, stream  int64 [instructions] of a period, each with its warp above bit 32
    length         instructions after which `known` comes again
    """
    for at in np.flatnonzero(known[:length] == stream[0]).tolist():
        if np.array_equal(np.roll(known, -at), stream):
            return length - at if at else 0
    return None
