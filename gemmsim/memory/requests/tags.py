"""The tag stage of L1: four banks of tags, each of which looks up one line of a request a cycle.

Which bank holds a line follows from its number by exclusive or. The bits (`l1.tag_bank_flips`) were found on an H200
(own microbenchmark, Nsight Compute's l1tex__t_set_conflicts and l1tex__t_output_wavefronts of 513 access patterns, up
to 512 MB apart): with them the wavefronts of every pattern come out as counted.

Of a load that misses L1, the data stage serves the lines of one such pass together, the passes one after another; a
bank takes lines in the order of the lanes that want them first. So loads from rows that are not aligned to lines take
more wavefronts than the banks of their words alone would need, and those that hit do not. Found on the H200 too:
l1tex__data_pipe_lsu_wavefronts of all 918 patterns of 32-, 64- and 128-bit loads that were measured missing, of 222 of
copies to shared memory through L1, and of 288 of loads that hit. What a load does that misses some of its lines was not
measured: it is taken to miss.

Other architectures are taken to be alike; no measurement says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import L1
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.coalescer import LINE_SHIFT

HASHED_BANKS = 4  # the number of banks for which `l1.tag_bank_flips` is a hash
_KEPT = 1 << 16  # results that are kept
_look_up = native_loop("requests/tags_loop", "look_up")


def bank_of(line: int, flips: tuple[int, ...]) -> int:
    """Tag bank of a line, by its number (address / 128): bit i of it inverts the bits flips[i] of the bank's number.

    Bits beyond `flips` do not count.
    """
    bank = 0
    for bit, flipped in enumerate(flips):
        bank ^= flipped * (line >> bit & 1)
    return bank


@dataclass(frozen=True)
class LaneLayout:
    """What decides how the data stage serves a shape; arrays run parallel to the shapes.

    line      int64 [shapes, 32] line of each lane, counted from the record's base; -1: the lane is inactive
    piece     int64 [shapes, 32] number of its bytes among pieces as wide as a lane's access, at least a word
    groups    int64 [shapes] 1, 2 or 4: lanes are served in groups of 32 / groups, whose pieces fill the banks once
    shares    bool [shapes] whether lanes that want the same piece share it
    by_pass   bool [shapes] whether misses are served pass by pass: loads, and copies through L1
    written   int64 [shapes] wavefronts that write a copy to shared memory
    wavefronts  int64 [shapes] of all, where it hits, or is of shared memory or a store
    """

    line: NDArray[np.int64]
    piece: NDArray[np.int64]
    groups: NDArray[np.int64]
    shares: NDArray[np.bool_]
    by_pass: NDArray[np.bool_]
    written: NDArray[np.int64]
    wavefronts: NDArray[np.int64]


def look_up(
    base: NDArray[np.uint64], shape: NDArray[np.int32], lanes: LaneLayout, l1: L1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cycles of the tag stage, and wavefronts of the data stage where it misses, for each request: int64 [requests].

    base   uint64 [requests] byte addresses, multiples of 128
    shape  int32 [requests] index into `lanes`

    The former is the most lines that lie in one bank. With another number of banks than four (`l1.tag_lines_per_cycle`)
    no hash is known: lines then take banks in turn.
    """
    banks = l1.tag_lines_per_cycle
    line = (base >> np.uint64(LINE_SHIFT)).astype(np.int64)
    shapes, width = lanes.line.shape
    cycles, waves = np.empty((2, len(base)), np.int64)
    _look_up(
        line, shape, lanes.line, lanes.piece, lanes.groups, lanes.shares, lanes.by_pass,
        lanes.written, lanes.wavefronts, banks, banks == HASHED_BANKS, _bank_bits(l1.tag_bank_flips),
        np.zeros((shapes, width), np.int64), np.full((shapes, width), -1, np.int8), np.zeros(shapes, np.int64),
        np.zeros(width, np.int64), np.zeros(max(width, banks), np.int64),
        np.full(_KEPT, -1, np.int64), np.zeros((3, _KEPT), np.int64), cycles, waves,
    )  # fmt: skip
    return cycles, waves


@cache
def _bank_bits(flips: tuple[int, ...]) -> NDArray[np.uint8]:
    """uint8 [2 * 2**n], n half of the flips: banks of lines 0 to 2**n - 1, and of those times 2**n.

    A line's bank is the exclusive or of two.
    """
    half = 1 << (len(flips) + 1) // 2
    return np.array([bank_of(line * unit, flips) for unit in (1, half) for line in range(half)], np.uint8)
