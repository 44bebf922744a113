"""The tag stage of L1: four banks of tags, each of which looks up one line of a request a cycle.

Which bank holds a line follows from its number by exclusive or. The masks were found on an H200 (own microbenchmark,
Nsight Compute's l1tex__t_set_conflicts and l1tex__t_output_wavefronts of 513 access patterns, up to 512 MB apart): with
them the wavefronts of every pattern come out as counted.

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

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gemmsim.memory.coalescer import LINE_SHIFT

BANKS = 4
# Bit i of the line number (address / 128) turns these bits of the bank number over.
_TURNS = (1, 2, 1, 2, 3, 1, 2, 3, 2, 1, 2, 1, 3, 1, 3, 2, 1, 3, 2, 3, 2, 3)
LOW_MASK = sum(1 << bit for bit, turns in enumerate(_TURNS) if turns & 1)
HIGH_MASK = sum(1 << bit for bit, turns in enumerate(_TURNS) if turns & 2)

_KEPT_BITS = 16
_KEPT = 1 << _KEPT_BITS  # results that are kept


def bank_of(line: int) -> int:
    """Tag bank of a line, by its number; bits of it beyond those measured do not count."""
    return (line & LOW_MASK).bit_count() % 2 + 2 * ((line & HIGH_MASK).bit_count() % 2)


@dataclass(frozen=True)
class Lanes:
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
    base: NDArray[np.uint64], shape: NDArray[np.int32], lanes: Lanes, lines_per_cycle: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cycles of the tag stage, and wavefronts of the data stage where it misses, for each request: int64 [requests].

    base   uint64 [requests] byte addresses, multiples of 128
    shape  int32 [requests] index into `lanes`

    The former is the most lines that lie in one bank. With another number of banks than `BANKS` (`lines_per_cycle`) no
    hash is known: lines then take banks in turn.
    """
    line = (base >> np.uint64(LINE_SHIFT)).astype(np.int64)
    cycles, waves = np.empty((2, len(base)), np.int64)
    _look_up(
        line, shape, lanes.line, lanes.piece, lanes.groups, lanes.shares, lanes.by_pass,
        lanes.written, lanes.wavefronts, lines_per_cycle,
        np.full(_KEPT, -1, np.int64), np.zeros((3, _KEPT), np.int64), cycles, waves,
    )  # fmt: skip
    return cycles, waves


@njit(cache=True)
def _parity(word):  # type: ignore[no-untyped-def]
    for shift in (16, 8, 4, 2, 1):
        word ^= word >> shift
    return word & 1


@njit(cache=True)
def _look_up(  # type: ignore[no-untyped-def]
    first_line, shape, line, piece, groups, shares, by_pass, written, wavefronts, banks,
    kept_shape, kept, out_cycles, out_waves,
):  # fmt: skip
    """What a request costs follows from its shape and the banks of its lines: the last results are kept."""
    lanes = line.shape[1]
    order = np.zeros((len(line), lanes), np.int8)  # lines of a shape in the order of lanes
    number = np.full((len(line), lanes), -1, np.int8)  # of those, which a lane wants
    count = np.zeros(len(line), np.int64)
    for s in range(len(line)):
        for lane in range(lanes):
            for n in range(count[s]):
                if line[s, order[s, n]] == line[s, lane]:
                    number[s, lane] = n
            if line[s, lane] >= 0 and number[s, lane] < 0:
                order[s, count[s]] = lane
                number[s, lane] = count[s]
                count[s] += 1
    bank = np.zeros(lanes, np.int64)
    pass_ = np.zeros(lanes, np.int64)
    depth = np.zeros(banks, np.int64)
    for i in range(len(first_line)):
        s = shape[i]
        word = np.uint64(0)
        for n in range(count[s]):
            at = first_line[i] + line[s, order[s, n]]
            bank[n] = _parity(at & LOW_MASK) + 2 * _parity(at & HIGH_MASK) if banks == BANKS else n % banks
            word |= np.uint64(bank[n] & 3) << np.uint64(2 * n)
        if banks != BANKS:
            word = np.uint64(0)
        place = np.int64(
            (word * np.uint64(0x9E3779B97F4A7C15) + np.uint64(s) * np.uint64(0xC2B2AE3D27D4EB4F))
            >> np.uint64(64 - _KEPT_BITS)
        )
        if kept_shape[place] != s or kept[0, place] != np.int64(word):
            depth[:] = 0
            for n in range(count[s]):
                pass_[n] = depth[bank[n]]
                depth[bank[n]] += 1
            kept_shape[place] = s
            kept[0, place] = np.int64(word)
            kept[1, place] = depth.max()
            kept[2, place] = wavefronts[s]
            if by_pass[s]:
                kept[2, place] = written[s] + _serve(number[s], pass_, kept[1, place], piece[s], groups[s], shares[s])
        out_cycles[i] = kept[1, place]
        out_waves[i] = kept[2, place]


@njit(cache=True)
def _serve(number, pass_, passes, piece, groups, shares):  # type: ignore[no-untyped-def]
    """Wavefronts of one request: for each group of lanes and pass, the most different pieces in one place."""
    lanes = len(number)
    size = lanes // groups
    depth = np.zeros(size, np.int64)
    total = 0
    for first in range(0, lanes, size):
        for now in range(passes):
            depth[:] = 0
            for lane in range(first, first + size):
                if number[lane] < 0 or pass_[number[lane]] != now:
                    continue
                again = False
                for other in range(first, lane):
                    again |= shares and number[other] >= 0 and piece[other] == piece[lane]
                if not again:
                    depth[piece[lane] % size] += 1
            total += depth.max()
    return total
