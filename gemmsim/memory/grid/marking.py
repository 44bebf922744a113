"""Marks what requests touch in a bitmap; for the compiled loops of `gemmsim.memory.grid.touched`."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.grid.bit_words import bits_below


def mark_group(marks, group, coalesced, bits):  # type: ignore[no-untyped-def]
    """Set the bits of the entries that the requests of a group touch."""
    first = marks.ends[group - 1] if group > 0 else np.int64(0)
    _mark(marks, first, marks.ends[group], coalesced, bits)


def _mark(marks, first, stop, coalesced, bits):  # type: ignore[no-untyped-def]
    """Set the bits of the entries that the requests from `first` to `stop` touch.

    Neighbouring requests that move alike, by a word or more, are moved together, so that words which follow one another
    are marked one after the other.
    """
    n = np.int64(first)
    while n < stop:
        i, end = marks.request[n], n + 1
        by, count = np.int64(0), np.int64(1)
        if len(marks.times) > 0 and marks.step[i] != 0:
            by, count = marks.step[i] >> marks.grain_bits, marks.times[i]
        if by >= 64 or by <= -64:
            while end < stop and _moves_alike(marks, i, marks.request[end]):
                end += 1
            for more in range(count):
                for number in range(n, end):
                    _mark_rows(marks, number, coalesced, bits, more * by, np.int64(0), np.int64(1))
        else:
            _mark_rows(marks, n, coalesced, bits, np.int64(0), by, count)
        n = end


def _moves_alike(marks, i, other):  # type: ignore[no-untyped-def]
    """Whether two requests move by as much, as often."""
    return marks.step[i] == marks.step[other] and marks.times[i] == marks.times[other]


def _mark_rows(marks, n, coalesced, bits, on, by, count):  # type: ignore[no-untyped-def]
    """Set the bits of the entries that the n-th request touches.

    on         by how many entries it is moved first
    by, count  it is there so often, each time so many entries further
    """
    grain, i, wide = np.int64(1) << marks.grain_bits, marks.request[n], marks.wide[n]
    run, less = max(np.int64(1), wide >> marks.grain_bits), min(np.int64(0), (count - 1) * by)
    by = max(by, -by)
    j = coalesced.sector_start[marks.shape[i]]
    last = j + coalesced.sectors[marks.shape[i]]
    while j < last:
        at = (marks.base[i] + coalesced.sector_offset[j] >> marks.grain_bits) - bits.low + on + less
        if by <= run:
            _mark_neighbours(bits, at, (count - 1) * by + run)
        elif 64 % by == 0:
            _mark_evenly(bits, at, by, count, run)
        elif run == 1:
            _mark_apart(bits, at, by, count)
        else:
            for more in range(count):
                _mark_neighbours(bits, at + more * by, run)
        j += grain
        while wide > 0 and j < last and coalesced.sector_offset[j] == coalesced.sector_offset[j - 1] + 1:
            j += grain


def _mark_neighbours(bits, at, count):  # type: ignore[no-untyped-def]
    """Set the bits of `count` entries from one on, which is counted from the bitmap's first."""
    end = at + count
    while at < end:
        stop = min(end, (at & ~63) + 64)
        below = ~np.uint64(0) if stop & 63 == 0 else bits_below(stop)
        _set(bits, at >> 6, below & ~bits_below(at))
        at = stop


def _mark_evenly(bits, at, by, count, run):  # type: ignore[no-untyped-def]
    """Set the bits of `run` entries from one on, and of as many every `by` entries, a divisor of 64, from there on,
    `count` times: they are the same ones in each word."""
    every = np.uint64(0)
    for more in range(64 // by):
        for number in range(run):
            every |= np.uint64(1) << np.uint64((at + more * by + number) & 63)
    end = at + (count - 1) * by + run
    while at < end:
        stop = min(end, (at & ~63) + 64)
        below = ~np.uint64(0) if stop & 63 == 0 else bits_below(stop)
        _set(bits, at >> 6, every & below & ~bits_below(at))
        at = stop


def _mark_apart(bits, at, by, count):  # type: ignore[no-untyped-def]
    """Set the bits of `count` entries, from one on and `by` from one another, word by word."""
    w, word = at >> 6, np.uint64(0)
    for _ in range(count):
        if at >> 6 != w:
            _set(bits, w, word)
            w, word = at >> 6, np.uint64(0)
        word |= np.uint64(1) << np.uint64(at & 63)
        at += by
    _set(bits, w, word)


def _set(bits, w, word):  # type: ignore[no-untyped-def]
    """Set bits in word `w`."""
    bits.words[w] |= word
    bits.summary[w >> 6] |= np.uint64(1) << np.uint64(w & 63)
