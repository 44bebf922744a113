"""The compiled part of `gemmsim.memory.caches.l1_cache`: looks up lines in an L1, and replaces them.

An entry has a line, whether it is kept and its valid sectors in one word.
"""

from __future__ import annotations

import numpy as np

from gemmsim.memory.requests.cache_operations import LAST_READ, READ

_KEPT = 16  # bit of an entry: its line is kept; below it are the valid sectors, above it is the line's number
_ENTRY_BITS = 5
_HELD, _HAND, _USES, _TURN = 0, 1, 2, 3  # elements of `L1Cache.state`


def empty(cache):  # type: ignore[no-untyped-def]
    cache.entries[:] = -1
    cache.state[:] = 0


def begin_turn(cache):  # type: ignore[no-untyped-def]
    """What is fetched from now on is under way for uses up to the next call."""
    cache.state[_TURN] = cache.state[_USES]


def look_up(cache, line, asked, whole, operation):  # type: ignore[no-untyped-def]
    """Look up a line. Return the sectors of `asked` that hit, as bits.

    A read leaves all sectors of `asked` valid, a write those of `whole`. Any use of a line that is there counts as use
    again, but while its fetch is under way. A last use changes nothing of when its line was used, brings no line that
    is absent, and ends that a line is kept.
    """
    cache.state[_USES] += 1
    row, way = _set_of(cache, line), 0
    ways = cache.entries.shape[1]
    while way < ways and cache.entries[row, way] >> _ENTRY_BITS != line:
        way += 1
    reads = fetches(operation)
    valid = asked if reads else whole
    if way == ways:
        if operation != LAST_READ:
            way = _room(cache, row)
            cache.entries[row, way] = line << _ENTRY_BITS | valid
            cache.came[row, way] = cache.used[row, way] = cache.state[_USES]
        return np.int64(0)
    present = cache.entries[row, way] & 15
    if operation == LAST_READ:
        if present:
            cache.entries[row, way] = (cache.entries[row, way] | valid) & ~_KEPT
        return asked & present
    cache.entries[row, way] |= valid
    cache.used[row, way] = cache.state[_USES]
    if not _under_way(cache, row, way):
        _keep(cache, row, way)
    return asked & (present if reads else np.int64(15))


def _set_of(cache, line):  # type: ignore[no-untyped-def]
    """Return the set of a line: the exclusive or of what each byte of its number contributes."""
    row = np.int64(0)
    for byte in range(cache.hash.shape[0]):
        row ^= cache.hash[byte, line >> 8 * byte & 255]
    return row


def _under_way(cache, row, way):  # type: ignore[no-untyped-def]
    """Whether a line of a set is being fetched: it came in this turn, and few look-ups ago."""
    came = cache.came[row, way]
    return came > cache.state[_TURN] and cache.state[_USES] - came < cache.fetch_lookups


def _room(cache, row):  # type: ignore[no-untyped-def]
    """Return a way of set `row` for a new line, which takes the place of another one if all lines are in use."""
    sets, ways = cache.entries.shape
    free = 0
    while free < ways and cache.entries[row, free] != -1:
        free += 1
    if free == ways:
        return _victim(cache, row)
    if cache.state[_HELD] < cache.lines:
        cache.state[_HELD] += 1
        return free
    hand = cache.state[_HAND]
    found = ways
    while found == ways:
        hand = (hand + 1) % sets
        found = 0
        while found < ways and cache.entries[hand, found] == -1:
            found += 1
    cache.state[_HAND] = hand
    cache.entries[hand, _victim(cache, hand)] = -1
    return free


def _keep(cache, row, way):  # type: ignore[no-untyped-def]
    """Keep a line that was used again. Half of a set is kept: if it is more, the least recently used of them no longer
    is, and counts as used now.
    """
    cache.entries[row, way] |= _KEPT
    kept, oldest = 0, way
    for other in range(cache.entries.shape[1]):
        if cache.entries[row, other] != -1 and cache.entries[row, other] & _KEPT:
            kept += 1
            if cache.used[row, other] < cache.used[row, oldest]:
                oldest = other
    if 2 * kept > cache.entries.shape[1]:
        cache.entries[row, oldest] &= ~_KEPT
        cache.used[row, oldest] = cache.state[_USES]


def _victim(cache, row):  # type: ignore[no-untyped-def]
    """Return the way of a set whose line is replaced: the least recently used of those that are not kept; where there
    is none, of those that are; where all are being fetched, of these.
    """
    victim, rank = -1, 3
    for way in range(cache.entries.shape[1]):
        entry = cache.entries[row, way]
        if entry == -1:
            continue
        here = 0
        if _under_way(cache, row, way):
            here = 2
        elif entry & _KEPT:
            here = 1
        if here < rank or (here == rank and cache.used[row, way] < cache.used[row, victim]):
            victim, rank = way, here
    return victim


def fetches(operation):  # type: ignore[no-untyped-def]
    """Whether an operation asks L2 for what L1 lacks."""
    if operation == LAST_READ:
        return True
    return operation == READ
