"""The tag stage of L1: four banks of tags, each of which looks up one line of a request a cycle.

Which bank holds a line follows from its number by exclusive or: the lowest two bits of the number of its set
(`l1.set_flips`, see `caches.l1_cache`). With them the wavefronts of 513 access patterns, up to 512 MB apart, come out
as an H200 counted (own microbenchmark, Nsight Compute's l1tex__t_set_conflicts and l1tex__t_output_wavefronts), if bit
25 of the address that they are counted from is taken to be set. Bits beyond follow from what displaces lines alone.

In one pass each bank looks up one of the lines of a request; it takes them in the order of the lanes that want them
first. If a load misses L1, the data stage serves the lines of one pass together, and the passes one after another. So
loads from rows that are not aligned to lines take more wavefronts than the banks of their words alone would need, and
loads that hit do not. This was found on the H200 too: l1tex__data_pipe_lsu_wavefronts of all 918 patterns of 32-, 64-
and 128-bit loads that were measured missing, of 222 of copies to shared memory through L1, and of 288 of loads that
hit. A load that misses some of its lines was not measured, and is taken to miss.

Other architectures are taken to be alike; no measurement says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L1
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.coalescer import LINE_SHIFT

HASHED_BANKS = 4  # the number of banks for which `l1.set_flips` is a hash
_CACHED_RESULTS = 1 << 16
_look_up = native_loop("requests/tags_loop", "look_up")


Line = TypeVar("Line", int, NDArray[np.int64])


def bank_of(line: Line, flips: tuple[int, ...]) -> Line:
    """Return the tag bank of a line, or of each of several, from the line's number (address / 128).

    Bit i of the line's number inverts the bits flips[i] of its set's number, of which the lowest two are the bank. Bits
    beyond `flips` do not count.
    """
    bank = line & 0
    for bit, flipped in enumerate(flips):
        bank ^= flipped % HASHED_BANKS * (line >> bit & 1)
    return bank


@dataclass(frozen=True)
class LaneLayout:
    """What decides how the data stage serves a request of each shape (see `Shapes`).

    line        int64 [shapes, 32] line of each lane, counted from the record's base; -1 where the lane is inactive
    piece       int64 [shapes, 32] which piece of memory the lane wants; pieces are as wide as one lane's access, and at
                least a word
    groups      int64 [shapes] 1, 2 or 4: so many groups of lanes are served; the pieces of one fill the banks once
    shares      bool [shapes] whether lanes that want the same piece share it
    by_pass     bool [shapes] whether misses are served pass by pass, as for loads and for copies through L1
    written     int64 [shapes] 1 where what is copied to shared memory through L1 is also written there, else 0
    wavefronts  int64 [shapes] wavefronts of the whole request if it hits L1, accesses shared memory or is a store
    """

    line: NDArray[np.int64]
    piece: NDArray[np.int64]
    groups: NDArray[np.int64]
    shares: NDArray[np.bool_]
    by_pass: NDArray[np.bool_]
    written: NDArray[np.int64]
    wavefronts: NDArray[np.int64]


@dataclass(frozen=True)
class TagBanks:
    """How many banks of tags there are, and which of them each line is in.

    banks   how many there are
    hashed  whether `bits` says which bank a line is in; else the lines of a request take banks in turn
    bits    uint8 [2 * 2**n]: the bank of a line is the exclusive or of the element at its n lowest bits in the first
            half, and of that at its next n bits in the second half
    """

    banks: int
    hashed: bool
    bits: NDArray[np.uint8]


@dataclass(frozen=True)
class Workspace:
    """Arrays that the compiled loop works in. The caller fills them as stated here.

    distinct       int64 [shapes, 32] zeros: the distinct lines of a shape, in the order of its lanes
    number         int8 [shapes, 32] all -1: which of those distinct lines each lane wants
    lines          int64 [shapes] zeros: how many distinct lines there are
    pass_of_line   int64 [32] the pass of the tag stage that looks up each distinct line of a request
    depth          int64 [32, or the number of banks if that is more] how many lines or pieces each bank serves so far
    cached_shape   int64 [_CACHED_RESULTS] all -1: the shape that each cached result is for
    cached         int64 [3, _CACHED_RESULTS] zeros: of each cached result, the banks of the request's lines (two bits a
                   line), its tag cycles and its wavefronts
    """

    distinct: NDArray[np.int64]
    number: NDArray[np.int8]
    lines: NDArray[np.int64]
    pass_of_line: NDArray[np.int64]
    depth: NDArray[np.int64]
    cached_shape: NDArray[np.int64]
    cached: NDArray[np.int64]


def look_up(
    base: NDArray[np.uint64], shape: NDArray[np.int32], lanes: LaneLayout, l1: L1
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return how many cycles the tag stage takes for each request, and how many wavefronts the data stage takes for it
    if it misses. Both are int32 [requests], of which there may be millions.

    base   uint64 [requests] byte addresses, multiples of 128
    shape  int32 [requests] index into `lanes`

    A request takes as many cycles as it has lines in the bank with the most of them. With another number of banks than
    four (`l1.tag_lines_per_cycle`) no hash is known, and lines take banks in turn.
    """
    line = (base >> np.uint64(LINE_SHIFT)).astype(np.int64)
    shapes, width = lanes.line.shape
    banks = TagBanks(l1.tag_lines_per_cycle, l1.tag_lines_per_cycle == HASHED_BANKS, _bank_bits(l1.set_flips))
    workspace = Workspace(
        distinct=np.zeros((shapes, width), np.int64),
        number=np.full((shapes, width), -1, np.int8),
        lines=np.zeros(shapes, np.int64),
        pass_of_line=np.zeros(width, np.int64),
        depth=np.zeros(max(width, banks.banks), np.int64),
        cached_shape=np.full(_CACHED_RESULTS, -1, np.int64),
        cached=np.zeros((3, _CACHED_RESULTS), np.int64),
    )
    cycles, wavefronts = np.empty((2, len(base)), np.int32)
    _look_up(line, shape, lanes, banks, workspace, cycles, wavefronts)
    return cycles, wavefronts


@cache
def _bank_bits(flips: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return `TagBanks.bits`: the banks of lines 0 to 2**n - 1, and of 2**n times these, where n is half the number of
    `flips`.
    """
    half = 1 << (len(flips) + 1) // 2
    lines = np.arange(half)
    return np.concatenate([bank_of(lines * unit, flips) for unit in (1, half)]).astype(np.uint8)
