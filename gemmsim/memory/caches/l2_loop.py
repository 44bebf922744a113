"""The compiled loop of `gemmsim.memory.caches.l2`, which replays what the L1 caches ask of L2."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.caches.lru import even_set_of, home_of, move, sectors_in, way_of
from gemmsim.memory.requests.cache_operations import READ, WRITE

# Bits of `L2State.valid`: the sectors that are there, and whether the line is replaced before others.
ALL_SECTORS, EVICT_FIRST = np.uint8(15), np.uint8(16)
BEHIND_ALL = 1 << 30


def replay(to_l2, asked, near, l2, missed, in_flight, numbers):  # type: ignore[no-untyped-def]
    """Replay all entries of `to_l2`: fill `missed` and `in_flight` (see `l2.L2Replay`). `l2` (`l2.L2State`) is left as
    it is after the last entry.

    to_l2, near  the arguments of `l2.replay_l2`
    asked        `l2.Asked`
    numbers      int64 [6] how many sectors DRAM reads at once (1, 2 or 4), the first line above local memory, how many
                 dirty lines a set holds at most, how many lines of it are for what is evicted first; then are counted
                 the dirty sectors that DRAM was given, and those of them of local memory
    """
    start = to_l2.start
    sms = len(start) - 1
    step = _step(sms)
    longest = 0
    for sm in range(sms):
        longest = max(longest, start[sm + 1] - start[sm])
    for turn in range(longest):
        for after in range(sms):
            sm = (turn + after * step) % sms
            i = start[sm] + turn
            if i < start[sm + 1]:
                _serve(l2, to_l2, i, near[sm], asked, missed, in_flight, numbers)


def _serve(l2, to_l2, i, near, asked, missed, in_flight, numbers):  # type: ignore[no-untyped-def]
    """Serve entry i of `to_l2`, from an SM near to partition `near`."""
    line, operation, request = to_l2.line[i], to_l2.operation[i], to_l2.request[i]
    sets = len(l2.tags) // l2.partitions  # of one partition
    home, row = home_of(line, l2.partitions), even_set_of(line, sets)
    wanted, group, evict_first = to_l2.sectors[i], asked.group[request], asked.evict_first[request]
    goes_first = evict_first and operation == READ
    newest = BEHIND_ALL if goes_first else 0
    copy, fetch_sectors = near * sets + row, numbers[0]
    if near != home and operation == READ:
        way = way_of(l2.tags, copy, line)
        if way >= 0:
            wanted &= ~l2.valid[copy, way]
            if wanted == 0:
                fetcher = l2.fetched_by[copy, way]
                if fetcher == group:
                    in_flight[request] = True
                _use(l2, copy, way, newest, line, l2.valid[copy, way], l2.dirty[copy, way], fetcher)
                return
    copied = near != home and (operation == READ or (operation == WRITE and not evict_first))
    row += home * sets
    way = way_of(l2.tags, row, line)
    present, changed, fetcher = np.uint8(0), np.uint8(0), np.int64(-1)
    if way >= 0:
        present, changed, fetcher = l2.valid[row, way], l2.dirty[row, way], l2.fetched_by[row, way]
    else:
        way = _way_for_new(l2, row, goes_first, numbers)
    if operation != WRITE:
        absent = wanted & ~present
        if absent:
            for first in range(0, 4, fetch_sectors):
                piece = np.uint8(((1 << fetch_sectors) - 1) << first)
                if absent & piece:
                    absent |= piece & ~present
            missed[request] += sectors_in(absent)
            present |= absent
            fetcher = group
        elif fetcher == group:
            in_flight[request] = True
    if operation != READ:
        changed |= to_l2.sectors[i]
    # What the far half alone asks its home for is replaced sooner there (tests/records/h200_l2.json).
    behind = newest
    if not goes_first and copied and l2.tags[row, 0] >= 0 and not l2.valid[row, 0] & EVICT_FIRST:
        behind = 1
    _use(l2, row, way, behind, line, present | wanted, changed, fetcher)
    if changed:
        _clean(l2, row, numbers)
    if copied:
        way, present = way_of(l2.tags, copy, line), np.uint8(0)
        if way >= 0:
            present = l2.valid[copy, way]
        else:
            way = _way_for_new(l2, copy, goes_first, numbers)
        _use(l2, copy, way, newest, line, present | wanted, np.uint8(0), fetcher)


def _way_for_new(l2, row, goes_first, numbers):  # type: ignore[no-untyped-def]
    """Return the way of set `row` for a line that is new there, after what it holds has been written back: an empty one
    or the last; for one that is to be evicted first, while few of them are there, that of the last ordinary line."""
    way = l2.tags.shape[1] - 1
    if goes_first and l2.tags[row, way] >= 0:
        ordinary = _ordinary(l2, row)
        if way + 1 - ordinary < numbers[3]:
            way = ordinary - 1
    _write_back(l2, row, way, numbers)
    return way


def _ordinary(l2, row):  # type: ignore[no-untyped-def]
    """Return how many lines of set `row` are not replaced first; they come before all that are."""
    for way in range(l2.tags.shape[1]):
        if l2.tags[row, way] < 0 or l2.valid[row, way] & EVICT_FIRST:
            return way
    return l2.tags.shape[1]


def _use(l2, row, way, behind, line, valid, dirty, fetched_by):  # type: ignore[no-untyped-def]
    """Make a line the most recent of set `row` but for `behind` others, or, BEHIND_ALL, the most recent of those that
    are to be evicted first. It takes the place of what was at index `way`."""
    valid &= ALL_SECTORS
    to = min(way, behind)
    if behind == BEHIND_ALL:
        to, valid = _ordinary(l2, row), valid | EVICT_FIRST
        if way < to:  # it was one of them
            to -= 1
    move(l2.tags, row, way, to, line)
    move(l2.valid, row, way, to, valid)
    move(l2.dirty, row, way, to, dirty)
    move(l2.fetched_by, row, way, to, fetched_by)


def _clean(l2, row, numbers):  # type: ignore[no-untyped-def]
    """Let DRAM have the dirty sectors of the least recent dirty line of set `row`, if more of its lines are dirty than
    may be."""
    dirty, oldest = 0, 0
    for way in range(l2.tags.shape[1]):
        if l2.dirty[row, way]:
            dirty, oldest = dirty + 1, way
    if dirty > numbers[2]:
        _write_back(l2, row, oldest, numbers)
        l2.dirty[row, oldest] = 0


def _write_back(l2, row, way, numbers):  # type: ignore[no-untyped-def]
    """Count the dirty sectors of the line at index `way` of set `row`, which DRAM is given."""
    dirty = sectors_in(l2.dirty[row, way])
    numbers[4] += dirty
    if l2.tags[row, way] < numbers[1]:
        numbers[5] += dirty


def _step(sms):  # type: ignore[no-untyped-def]
    """Return the step, in SMs, from the SM whose turn it is to the next one: with it, all SMs have one turn each, and
    neighbours have theirs far apart.
    """
    step = sms * 618 // 1000 + 1
    while _common_divisor(step, sms) > 1:
        step += 1
    return step


def _common_divisor(a, b):  # type: ignore[no-untyped-def]
    """Return the greatest common divisor of `a` and `b`."""
    while b > 0:
        a, b = b, a % b
    return a
