"""The compiled loops of `gemmsim.memory.grid.touched`, which mark entries in a bitmap and find them there."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.grid.bit_words import bits_in, lowest_bit
from gemmsim.memory.grid.marking import mark_group


def measure_groups(marks, coalesced, bits, groups, entries, apart):  # type: ignore[no-untyped-def]
    """Count the entries of some groups of requests, int64 [all groups].

    marks      `marks.Marks`
    coalesced  the requests' shapes
    bits       `bitmap.Bits`
    groups     int64 [n] which groups
    apart      see `_measure`
    """
    for n in range(len(groups)):
        mark_group(marks, groups[n], coalesced, bits)
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
            mark_group(marks, groups[n], coalesced, bits)
            n += 1
        lists[number, 4] = _collect(bits, unit, lists[number, 2], lists[number, 3], sector, lists[number, 1])


def list_words(marks, coalesced, bits, group, unit, words):  # type: ignore[no-untyped-def]
    """List the words of the bitmap with the entries of one group, for `choose_in_words`; return how many there are. The
    first parameters are those of `measure_groups`.

    unit   entries of a unit
    words  `bitmap.Words`, which is filled
    """
    mark_group(marks, group, coalesced, bits)
    n, units, w = np.int64(0), np.int64(0), _next(bits, 0)
    while w >= 0:
        words.place[n], words.before[n], words.word[n] = w, units, _take(bits, w)
        units += bits_in(words.word[n]) // unit
        n += 1
        w = _next(bits, w)
    return n


def choose_in_words(words, count, unit, first, every, low, sector):  # type: ignore[no-untyped-def]
    """List every `every`-th unit of those in `count` words, from the unit with the number `first` on; return how many.

    words   `bitmap.Words`
    unit    entries of a unit
    low     the entry of the bitmap's first bit
    sector  int64 [n] is filled with the numbers of these units
    """
    at, chosen = np.int64(0), np.int64(first)
    for n in range(count):
        if n + 1 < count and words.before[n + 1] <= chosen:
            continue
        entry, skipped = low + words.place[n] * 64, chosen - words.before[n]
        listed = _choose_in_word(words.word[n], entry, unit, skipped, every, sector, at)
        at, chosen = at + listed, chosen + listed * every
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
        mark_group(marks, groups[n], coalesced, bits)
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
    w = _next(bits, 0)
    while w >= 0:
        word = _take(bits, w)
        listed = _choose_in_word(word, bits.low + w * 64, unit, chosen - number, every, sector, at)
        at, chosen, number = at + listed, chosen + listed * every, number + bits_in(word) // unit
        w = _next(bits, w)
    return at - first


def _choose_in_word(word, entry, unit, skipped, every, sector, at):  # type: ignore[no-untyped-def]
    """List every `every`-th unit of a word behind the first ones, and return how many.

    entry    that of the word's first bit
    skipped  how many units are left out first
    sector   int64 [n] is filled with the numbers of these units, from `at` on
    """
    units, listed, chosen = bits_in(word) // unit, np.int64(0), np.int64(skipped)
    if chosen >= units:
        return listed
    lowest = lowest_bit(word)
    run = word >> np.uint64(lowest)
    if run & (run + np.uint64(1)) == 0:  # they follow one another, as they do mostly
        while chosen < units:
            sector[at + listed] = (entry + lowest) // unit + chosen
            listed, chosen = listed + 1, chosen + every
        return listed
    together, number = (np.uint64(1) << np.uint64(unit)) - np.uint64(1), np.int64(0)
    while word != 0:
        lowest = lowest_bit(word)
        word &= ~(together << np.uint64(lowest))
        if number == chosen:
            sector[at + listed] = (entry + lowest) // unit
            listed, chosen = listed + 1, chosen + every
        number += 1
    return listed


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
