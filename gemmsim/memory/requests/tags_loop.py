"""The look-up of `gemmsim.memory.requests.tags`."""

from __future__ import annotations

import numpy as np
from numba import njit


def look_up(  # type: ignore[no-untyped-def]
    first_line, shape, line, piece, groups, shares, by_pass, written, wavefronts, banks, hashed, bank_bits,
    distinct, number, count, pass_, depth, kept_shape, kept, out_cycles, out_waves,
):  # fmt: skip
    """What a request costs follows from its shape and the banks of its lines: the last results are kept.

    hashed     whether `bank_bits`, uint8 [2 * 2**n], has banks: that of a line is its n low bits' xor that
               of the next n, whose part begins behind theirs
    distinct   int64 [shapes, lanes]: lines of a shape in the order of lanes, to be filled
    number     int8 [shapes, lanes], all -1: of those, which a lane wants
    count      int64 [shapes], all 0: how many these are
    pass_, depth  int64 [lanes], [at least lanes and banks]: room
    """
    lanes = line.shape[1]
    for s in range(len(line)):
        for lane in range(lanes):
            for n in range(count[s]):
                if distinct[s, n] == line[s, lane]:
                    number[s, lane] = n
            if line[s, lane] >= 0 and number[s, lane] < 0:
                distinct[s, count[s]] = line[s, lane]
                number[s, lane] = count[s]
                count[s] += 1
    half = np.uint64(len(bank_bits) >> 1)
    half_bits, shift = np.uint64(_bits(half)), np.uint64(64 - _bits(len(kept_shape)))
    for i in range(len(first_line)):
        s = shape[i]
        lines = count[s]
        word = np.uint64(0)
        if hashed:
            for n in range(lines):
                at = np.uint64(first_line[i] + distinct[s, n])
                low, high = at & (half - np.uint64(1)), (at >> half_bits) & (half - np.uint64(1))
                word |= np.uint64(bank_bits[low] ^ bank_bits[half + high]) << np.uint64(2 * n)
        place = (word * np.uint64(0x9E3779B97F4A7C15) + np.uint64(s) * np.uint64(0xC2B2AE3D27D4EB4F)) >> shift
        if kept_shape[place] != s or kept[0, place] != np.int64(word):
            for n in range(banks):
                depth[n] = 0
            for n in range(lines):
                bank = np.int64((word >> np.uint64(2 * n)) & np.uint64(3)) if hashed else n % banks
                pass_[n] = depth[bank]
                depth[bank] += 1
            deepest = np.int64(0)
            for n in range(banks):
                deepest = max(deepest, depth[n])
            kept_shape[place] = s
            kept[0, place] = np.int64(word)
            kept[1, place] = deepest
            kept[2, place] = wavefronts[s]
            if by_pass[s]:
                served = _serve(number[s], pass_, deepest, piece[s], groups[s], shares[s], depth)
                kept[2, place] = written[s] + served
        out_cycles[i] = kept[1, place]
        out_waves[i] = kept[2, place]


@njit(inline="always")
def _bits(size):  # type: ignore[no-untyped-def]
    """n, of a size 2**n."""
    found = 0
    while (1 << found) < size:
        found += 1
    return found


@njit(inline="always")
def _serve(number, pass_, passes, piece, groups, shares, depth):  # type: ignore[no-untyped-def]
    """Wavefronts of one request: for each group of lanes and pass, the most different pieces in one place."""
    lanes = len(number)
    size = lanes // groups
    total = np.int64(0)
    for first in range(0, lanes, size):
        for now in range(passes):
            for n in range(size):
                depth[n] = 0
            for lane in range(first, first + size):
                if number[lane] < 0 or pass_[number[lane]] != now:
                    continue
                again = False
                for other in range(first, lane):
                    again |= shares and number[other] >= 0 and piece[other] == piece[lane]
                if not again:
                    depth[piece[lane] % size] += 1
            most = np.int64(0)
            for n in range(size):
                most = max(most, depth[n])
            total += most
    return total
