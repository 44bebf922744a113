"""The compiled loops of `gemmsim.memory.grid.touched`, which mark entries in a bitmap and find them there."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.grid.bit_words import bits_below, bits_in, lowest_bit


def measure_groups(marks, coalesced, bits, groups, entries, apart):  # type: ignore[no-untyped-def]
    """Count the entries of some groups of requests, int64 [all groups].

    marks      `marks.Marks`
    coalesced  the requests' shapes
    bits       `touched._Bits`
    groups     int64 [n] which groups
    apart      see `_measure`
    """
    for n in range(len(groups)):
        _mark_group(marks, groups[n], coalesced, bits)
        entries[groups[n]] = _measure(bits, apart)


def collect_groups(marks, coalesced, bits, groups, lists, unit, sector):  # type: ignore[no-untyped-def]
    """List units of the entries of some groups. The first parameters are those of `measure_groups`.

    groups  int64 [n] which groups, in the order of their lists: those of one list are marked together
    lists   int64 [lists, 5] where each list ends in `groups`, and where it begins in `sector`; every how many units are
            listed, and how many there were before; the last column is filled with how many units are listed
    unit    entries of a unit
    sector  int64 [n] is filled with the numbers of these units
    """
    n = np.int64(0)
    for number in range(len(lists)):
        while n < lists[number, 0]:
            _mark_group(marks, groups[n], coalesced, bits)
            n += 1
        lists[number, 4] = _collect(bits, unit, lists[number, 2], lists[number, 3], sector, lists[number, 1])


def list_words(marks, coalesced, bits, group, unit, words):  # type: ignore[no-untyped-def]
    """List the words of the bitmap with the entries of one group, for `choose_in_words`; return how many there are. The
    first parameters are those of `measure_groups`.

    unit   entries of a unit
    words  `touched._Words`, which is filled
    """
    _mark_group(marks, group, coalesced, bits)
    n, units, w = np.int64(0), np.int64(0), _next(bits, 0)
    while w >= 0:
        words.place[n], words.before[n], words.word[n] = w, units, _take(bits, w)
        units += bits_in(words.word[n]) // unit
        n += 1
        w = _next(bits, w)
    return n


def choose_in_words(words, count, unit, first, every, low, sector):  # type: ignore[no-untyped-def]
    """List every `every`-th unit of those in `count` words, from the unit with the number `first` on; return how many.

    words   `touched._Words`
    unit    entries of a unit
    low     the entry of the bitmap's first bit
    sector  int64 [n] is filled with the numbers of these units
    """
    at, chosen = np.int64(0), np.int64(first)
    together = (np.uint64(1) << np.uint64(unit)) - np.uint64(1)
    for n in range(count):
        if n + 1 < count and words.before[n + 1] <= chosen:
            continue
        word, number = words.word[n], words.before[n]
        while word != 0:
            lowest = lowest_bit(word)
            word &= ~(together << np.uint64(lowest))
            if number == chosen:
                sector[at] = (low + words.place[n] * 64 + lowest) // unit
                at, chosen = at + 1, chosen + every
            number += 1
    return at


def choose_groups(marks, coalesced, bits, groups, chosen, unit, kept, sector):  # type: ignore[no-untyped-def]
    """List those of given units that some groups touch. The first parameters are those of `measure_groups`.

    groups  int64 [n] which groups
    chosen  int64 [n, 4] where the units given for each group begin and end in `kept`, and where it begins in `sector`;
            the last column is filled with how many units are listed
    unit    entries of a unit
    kept    int64 [units] numbers of units
    sector  int64 [n] is filled with the numbers of these units
    """
    for n in range(len(groups)):
        _mark_group(marks, groups[n], coalesced, bits)
        at = chosen[n, 2]
        for place in range(chosen[n, 0], chosen[n, 1]):
            entry = kept[place] * unit - bits.low
            if (bits.words[entry >> 6] >> np.uint64(entry & 63)) & np.uint64(1) != 0:
                sector[at] = kept[place]
                at += 1
        chosen[n, 3] = at - chosen[n, 2]
        w = _next(bits, 0)
        while w >= 0:
            _take(bits, w)
            w = _next(bits, w)


def _mark_group(marks, group, coalesced, bits):  # type: ignore[no-untyped-def]
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
            by, count = marks.step[i] // marks.grain, marks.times[i]
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
    grain, i, wide = marks.grain, marks.request[n], marks.wide[n]
    run, less = max(np.int64(1), wide // grain), min(np.int64(0), (count - 1) * by)
    by = max(by, -by)
    j = coalesced.sector_start[marks.shape[i]]
    last = j + coalesced.sectors[marks.shape[i]]
    while j < last:
        at = (marks.base[i] + coalesced.sector_offset[j]) // grain - bits.low + on + less
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


def _measure(bits, apart):  # type: ignore[no-untyped-def]
    """Empty the bitmap, and return how many entries were in it.

    apart  uint64 [units] for units of 2, 4, 8, 16 and 32 entries gets bits where the first entries of the two halves of
           a unit are not alike
    """
    count, w = np.int64(0), _next(bits, 0)
    while w >= 0:
        word = _take(bits, w)
        apart[0] |= (word ^ (word >> np.uint64(1))) & np.uint64(0x5555555555555555)
        apart[1] |= (word ^ (word >> np.uint64(2))) & np.uint64(0x1111111111111111)
        apart[2] |= (word ^ (word >> np.uint64(4))) & np.uint64(0x0101010101010101)
        apart[3] |= (word ^ (word >> np.uint64(8))) & np.uint64(0x0001000100010001)
        apart[4] |= (word ^ (word >> np.uint64(16))) & np.uint64(0x0000000100000001)
        count += bits_in(word)
        w = _next(bits, w)
    return count


def _collect(bits, unit, every, before, sector, first):  # type: ignore[no-untyped-def]
    """Empty the bitmap, list every `every`-th unit of `unit` entries of it, and return how many there are.

    before  how many units of the same list there were before
    sector  int64 [n] is filled with the numbers of these units, from `first` on
    """
    number, at = np.int64(before), np.int64(first)
    chosen = -(-number // every) * every  # the next one that is listed
    together = (np.uint64(1) << np.uint64(unit)) - np.uint64(1)
    w = _next(bits, 0)
    while w >= 0:
        word = _take(bits, w)
        if number + bits_in(word) // unit <= chosen:
            number += bits_in(word) // unit
            word = np.uint64(0)
        while word != 0:
            lowest = lowest_bit(word)
            word &= ~(together << np.uint64(lowest))
            if number == chosen:
                sector[at] = (bits.low + w * 64 + lowest) // unit
                at, chosen = at + 1, chosen + every
            number += 1
        w = _next(bits, w)
    return at - first


def _next(bits, first):  # type: ignore[no-untyped-def]
    """Return the number of the first word that has any bit, where those before `first` have none; -1 without any."""
    for s in range(first >> 6, len(bits.summary)):
        if bits.summary[s] != 0:
            return np.int64(s * 64 + lowest_bit(bits.summary[s]))
    return np.int64(-1)


def _take(bits, w):  # type: ignore[no-untyped-def]
    """Return word `w` of the bitmap, and empty it."""
    word = bits.words[w]
    bits.words[w] = np.uint64(0)
    bits.summary[w >> 6] &= ~(np.uint64(1) << np.uint64(w & 63))
    return word
