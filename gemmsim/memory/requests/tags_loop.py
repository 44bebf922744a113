"""The compiled loop of `gemmsim.memory.requests.tags`, which looks up requests in the banks of tags."""

from __future__ import annotations

import numpy as np


def look_up(first_line, shape, lanes, banks, work, cycles, wavefronts):  # type: ignore[no-untyped-def]
    """Fill `cycles` and `wavefronts`, int32 [requests], with what `tags.look_up` returns.

    first_line  int64 [requests] line of the base of each request
    shape       int32 [requests] index into `lanes`
    lanes       `tags.LaneLayout`
    banks       `tags.TagBanks`
    work        `tags.Workspace`

    What a request costs follows from its shape and the banks of its lines. So the loop caches results, and finds them
    by shape and banks.
    """
    _number_lines(lanes, work)
    half = np.uint64(len(banks.bits) >> 1)
    half_bits, shift = np.uint64(_bits(half)), np.uint64(64 - _bits(len(work.cached_shape)))
    cached = work.cached
    for i in range(len(first_line)):
        s = shape[i]
        word = np.uint64(0)  # the banks of the request's lines, two bits each
        if banks.hashed:
            for n in range(work.lines[s]):
                at = np.uint64(first_line[i] + work.distinct[s, n])
                low, high = at & (half - np.uint64(1)), (at >> half_bits) & (half - np.uint64(1))
                word |= np.uint64(banks.bits[low] ^ banks.bits[half + high]) << np.uint64(2 * n)
        place = (word * np.uint64(0x9E3779B97F4A7C15) + np.uint64(s) * np.uint64(0xC2B2AE3D27D4EB4F)) >> shift
        if work.cached_shape[place] != s or cached[0, place] != np.int64(word):
            deepest = _assign_passes(work, banks, s, word)
            work.cached_shape[place] = s
            cached[0, place] = np.int64(word)
            cached[1, place] = deepest
            cached[2, place] = lanes.wavefronts[s]
            if lanes.by_pass[s]:
                cached[2, place] = lanes.written[s] + _served_by_pass(lanes, work, s, deepest)
        cycles[i] = cached[1, place]
        wavefronts[i] = cached[2, place]


def _number_lines(lanes, work):  # type: ignore[no-untyped-def]
    """Number the distinct lines of each shape: fills `distinct`, `number` and `lines` of `work`."""
    for s in range(len(lanes.line)):
        for lane in range(lanes.line.shape[1]):
            for n in range(work.lines[s]):
                if work.distinct[s, n] == lanes.line[s, lane]:
                    work.number[s, lane] = n
            if lanes.line[s, lane] >= 0 and work.number[s, lane] < 0:
                work.distinct[s, work.lines[s]] = lanes.line[s, lane]
                work.number[s, lane] = work.lines[s]
                work.lines[s] += 1


def _assign_passes(work, banks, s, word):  # type: ignore[no-untyped-def]
    """Assign each line of a request of shape `s` to a pass: fills `pass_of_line`, and returns the number of passes.

    word  the banks of the request's lines, two bits each
    """
    for n in range(banks.banks):
        work.depth[n] = 0
    for n in range(work.lines[s]):
        bank = np.int64((word >> np.uint64(2 * n)) & np.uint64(3)) if banks.hashed else n % banks.banks
        work.pass_of_line[n] = work.depth[bank]
        work.depth[bank] += 1
    deepest = np.int64(0)
    for n in range(banks.banks):
        deepest = max(deepest, work.depth[n])
    return deepest


def _bits(size):  # type: ignore[no-untyped-def]
    """Return n for a size of 2**n."""
    found = 0
    while (1 << found) < size:
        found += 1
    return found


def _served_by_pass(lanes, work, s, passes):  # type: ignore[no-untyped-def]
    """Return the wavefronts that read for a request of shape `s` that misses: for each group of lanes and each pass of
    the tag stage, the most different pieces that are wanted from the same banks.
    """
    number, piece, depth = work.number[s], lanes.piece[s], work.depth
    size = len(number) // lanes.groups[s]
    total = np.int64(0)
    for first in range(0, len(number), size):
        for now in range(passes):
            for n in range(size):
                depth[n] = 0
            for lane in range(first, first + size):
                if number[lane] < 0 or work.pass_of_line[number[lane]] != now:
                    continue
                again = False
                for other in range(first, lane):
                    again |= lanes.shares[s] and number[other] >= 0 and piece[other] == piece[lane]
                if not again:
                    depth[piece[lane] % size] += 1
            most = np.int64(0)
            for n in range(size):
                most = max(most, depth[n])
            total += most
    return total
