"""The compiled part of `gemmsim.memory.caches.l1_cache`: looks up lines in an L1, and replaces them.

An entry has a line, whether it is kept and its valid sectors in one word.
"""

from __future__ import annotations

import numpy as np

from gemmsim.memory.requests.cache_operations import LAST_READ, READ

_KEPT = 16  # bit of an entry: its line is kept; below it are the valid sectors, above it is the line's number
_ENTRY_BITS = 5
_USES, _TURN = 0, 1  # elements of `L1Cache.state`
_HIT, _REPLACED, _FREE_TAG = 0, 1, 2  # elements of `L1Cache.lost_lines`


def empty(cache):  # type: ignore[no-untyped-def]
    cache.entries[:] = -1
    cache.held[:] = 0
    cache.hand[:] = 0
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
            _bring(cache, row, line, valid)
        return np.int64(0)
    present = cache.entries[row, way] & 15
    found = asked & (present if reads else np.int64(15))
    if operation != LAST_READ:
        cache.entries[row, way] |= valid
        cache.used[row, way] = cache.state[_USES]
        if not _under_way(cache, row, way):
            _keep(cache, row, way)
    elif present:
        cache.entries[row, way] = (cache.entries[row, way] | valid) & ~_KEPT
    if _is_full(cache, row):
        _lose_lines(cache, row, cache.lost_lines[_HIT])
    return found


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


def _bring(cache, row, line, valid):  # type: ignore[no-untyped-def]
    """Let a line come to set `row`, where it takes the place of another one if all tags are in use."""
    ways, way, lost = cache.entries.shape[1], 0, np.int64(0)
    while way < ways and cache.entries[row, way] != -1:
        way += 1
    free_tag = way < ways
    if _is_full(cache, row):
        lost = cache.lost_lines[_FREE_TAG if free_tag else _REPLACED]
    if free_tag:
        cache.held[_bank(cache, row)] += 1
        if lost:
            _lose_lines(cache, row, np.int64(1))
            lost -= 1
    else:
        way = _victim(cache, row)
    cache.entries[row, way] = line << _ENTRY_BITS | valid
    cache.came[row, way] = cache.used[row, way] = cache.state[_USES]
    _lose_lines(cache, row, lost)


def _bank(cache, row):  # type: ignore[no-untyped-def]
    return row & (len(cache.held) - 1)


def _is_full(cache, row):  # type: ignore[no-untyped-def]
    return cache.held[_bank(cache, row)] >= cache.full_lines


def _lose_lines(cache, row, count):  # type: ignore[no-untyped-def]
    """Let the hand of the bank of set `row` go on to the next set that has lines, `count` times. That set loses a line,
    but none where all of its lines are being fetched, unless the bank holds more than it has data for.
    """
    bank, banks = _bank(cache, row), len(cache.held)
    sets = cache.entries.shape[0] // banks
    for _ in range(count):
        for _ in range(sets):
            at = cache.hand[bank] * banks + bank
            cache.hand[bank] = (cache.hand[bank] + 1) % sets
            victim = _victim(cache, at)
            if victim != -1:
                if not _under_way(cache, at, victim) or cache.held[bank] > cache.bank_lines:
                    cache.entries[at, victim] = -1
                    cache.held[bank] -= 1
                break


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
    is none, of those that are; where all are being fetched, of these. -1: the set is empty.
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
