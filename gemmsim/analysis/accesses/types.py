"""Single accesses of a launch, lane by lane, and the way of one block through its arrays: what drawings are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import SourceLine


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array that the kernel was given.

    position    among the launch's arguments; name: "A", "B", "C" where the launch is known to be a GEMM, else "arg 0"
    shape       as the launch has it; of a GEMM's flat arrays (rows, columns)
    """

    position: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    item_bytes: int

    def index(self, element: int) -> tuple[int, ...]:
        """[row, column] of an element counted from the array's start."""
        index: list[int] = []
        for size in reversed(self.shape):
            element, place = divmod(element, size)
            index.append(place)
        return tuple(reversed(index))


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """One executed memory instruction of one warp: all its lanes. Tuples have 32 entries, one a lane.

    block            linear id; warp: of the block; execution: how many times the warp had made this access before
    addresses        first byte of each lane, None where it is inactive; of shared memory from the window's start
    sectors, ideal_sectors   distinct 32-byte sectors, and what the bytes asked for would fill; 0 for shared memory
    wavefronts, conflicts    of the L1/shared data stage
    sector_addresses         first byte of each distinct sector, ascending; () for shared memory
    sector                   index into `sector_addresses`, -1 where inactive
    bank                     first bank touched (a lane touches width / 4 of them), -1 where inactive
    wavefront                which of the request's wavefronts serves the lane, -1 where none does: `memory.service`
    argument                 position of the array in which the first active lane falls, None where in none
    elements                 index in that array, None where inactive or elsewhere; () where `argument` is None
    """

    block: int
    warp: int
    execution: int
    addresses: tuple[int | None, ...]
    sectors: int
    ideal_sectors: int
    wavefronts: int
    conflicts: int
    sector_addresses: tuple[int, ...]
    sector: tuple[int, ...]
    bank: tuple[int, ...]
    wavefront: tuple[int, ...]
    argument: int | None
    elements: tuple[tuple[int, ...] | None, ...]

    @property
    def active_mask(self) -> int:
        """Bit l set where lane l accesses memory."""
        return sum(1 << lane for lane, address in enumerate(self.addresses) if address is not None)


@dataclass(frozen=True, slots=True)
class AccessSample:
    """What one static memory instruction asks for.

    index           of the instruction; mnemonic: "LDG.E.128"
    line, text      of the source, as in `LineTraffic`
    space, op, width_bytes   as in `memory.access.Access`; a copy (op "ldgsts") is shown where it reads global memory
    shapes          distinct shapes of its accesses in all that was executed
    representative  the shape that the block shown uses most; share: of that block's accesses, from 0 to 1
    worst           the one with most wavefronts (shared memory) or sectors; the representative where none is worse
    """

    index: int
    mnemonic: str
    line: SourceLine | None
    text: str
    space: str
    op: str
    width_bytes: int
    shapes: int
    representative: WarpAccess
    share: float
    worst: WarpAccess


@dataclass(frozen=True, slots=True)
class ThreadAccess:
    """What each thread of the block shown accesses the first time that it executes one instruction.

    argument    position of the array, None for shared and local memory
    first       int64 [warps, 32] elements from the array's start, or the byte address where `argument` is None;
                -1 where the lane is inactive or elsewhere
    accesses    int64 [warps] how often each warp made the access
    """

    index: int
    argument: int | None
    first: NDArray[np.int64]
    accesses: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The smallest rectangle of an array that holds all that was touched; ranges are half open, of rows and columns."""

    argument: int
    op: str
    rows: tuple[int, int]
    columns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Phase:
    """One iteration of the loop over K, or what comes before or after it. op of a rectangle: "ld" or "st"."""

    label: str
    rectangles: tuple[Rectangle, ...]


@dataclass(frozen=True, slots=True)
class BlockView:
    """One executed block: that which stands for most others, of several the one nearest to the middle of the grid.

    block         linear id; place: (x, y, z) in the grid
    arrays        the launch's array arguments
    threads       one entry a global or shared memory instruction that the block executed
    phases        in order; where there are more than `phases.MOST_PHASES` iterations, the first of them and the last
    iterations    of the loop over K in this block, 0 where it has none
    """

    block: int
    place: tuple[int, int, int]
    arrays: tuple[ArrayArgument, ...]
    threads: tuple[ThreadAccess, ...]
    phases: tuple[Phase, ...]
    iterations: int
