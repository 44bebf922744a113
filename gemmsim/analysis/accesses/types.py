"""Defines the data classes from which reports draw memory accesses.

The classes hold single accesses, with the address of each lane, and which part of each array one block touches in each
iteration of its loop over K.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import SourceLine


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array that the kernel was given.

    position    its index among the launch's arguments; behind them come variables of the kernel's module
    name        "A", "B", "C" or "bias" where the launch is known to be a GEMM, else "arg 0"
    shape       as the launch gives it; for a flat array of a GEMM, the matrix's (rows, columns)
    item_bytes  size of an element
    """

    position: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    item_bytes: int

    def index(self, element: int) -> tuple[int, ...]:
        """Return the index, such as (row, column), of element number `element`, counted from the array's start."""
        index: list[int] = []
        for size in reversed(self.shape):
            element, place = divmod(element, size)
            index.append(place)
        return tuple(reversed(index))


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """One memory instruction that one warp executed. Tuples by lane have 32 entries.

    block                    linear index in the grid
    warp                     its index in the block
    execution                how many times the warp had executed the instruction before
    addresses                by lane: first byte, None where inactive; in shared memory, from its window's start
    sectors, ideal_sectors   distinct 32-byte sectors, and how many the bytes would fill if packed; 0 for shared memory
    wavefronts, conflicts    cycles of the L1/shared data stage, and how many of them only bank conflicts cause
    sector_addresses         first byte of each distinct sector, ascending; () for shared memory
    sector                   by lane: index into `sector_addresses`, -1 where inactive
    bank                     by lane: first bank touched (a lane touches width / 4 banks), -1 where inactive
    wavefront                by lane: number of the wavefront that serves it, -1 where none does
    argument                 position of the array in which the first active lane falls, None where it falls in none
    elements                 by lane: index in that array, None where inactive or outside; () where `argument` is None
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
        """The active lanes as an integer: bit l is set where lane l accesses memory."""
        return sum(1 << lane for lane, address in enumerate(self.addresses) if address is not None)


@dataclass(frozen=True, slots=True)
class AccessSample:
    """Examples of the accesses of one static memory instruction.

    index           of the instruction in the program
    mnemonic        "LDG.E.128"
    line, text      of the source, as in `LineTraffic`
    space, op, width_bytes   as in `memory.requests.access.Access`; of a copy ("ldgsts"), of its global read
    shapes          how many distinct access shapes it has, in all blocks that were executed
    representative  an access of the shape that the block shown uses most
    share           share of that shape in the block's accesses by this instruction, from 0 to 1
    worst           an access with most wavefronts (shared memory) or else sectors; `representative` where none is worse
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
    """What each thread of the block that drawings show accesses when it first executes one instruction.

    index       of the instruction in the program
    argument    position of the array, None for shared and local memory
    first       int64 [warps, 32]: element counted from the array's start, or byte address where `argument` is None;
                -1 where the lane is inactive or accesses something outside that array
    accesses    int64 [warps]: how often each warp executed the instruction
    """

    index: int
    argument: int | None
    first: NDArray[np.int64]
    accesses: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The smallest rectangle of an array that holds all elements that were touched in one phase by one kind of access.

    argument       position of the array among the launch's arguments
    op             "ld" or "st"
    rows, columns  half-open ranges
    """

    argument: int
    op: str
    rows: tuple[int, int]
    columns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Phase:
    """One iteration of the loop over K, or the code before or after it, and the parts of arrays that it touches."""

    label: str
    rectangles: tuple[Rectangle, ...]


@dataclass(frozen=True, slots=True)
class BlockView:
    """The executed block that drawings show. `block_records.heaviest` chooses it.

    block         linear index in the grid
    place         its coordinates (x, y, z) in the grid
    arrays        the launch's array arguments
    threads       one entry for each global or shared memory instruction that the block executed
    phases        in order; of more than `phases.MOST_PHASES` iterations, the first ones and the last
    iterations    how many the loop over K makes in this block, 0 where it has none
    """

    block: int
    place: tuple[int, int, int]
    arrays: tuple[ArrayArgument, ...]
    threads: tuple[ThreadAccess, ...]
    phases: tuple[Phase, ...]
    iterations: int
