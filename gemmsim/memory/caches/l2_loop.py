"""The compiled loop of `gemmsim.memory.caches.l2`, which replays what the L1 caches ask of L2."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.caches.lru import even_set_of, home_of, move, sectors_in, way_of
from gemmsim.memory.requests.cache_operations import READ, WRITE


def replay(to_l2, group, near, l2, missed, in_flight, numbers):  # type: ignore[no-untyped-def]
    """Replay all entries of `to_l2`: fill `missed` and `in_flight` (see `l2.L2Replay`). `l2` (`l2.L2State`) is left as
    it is after the last entry.

    to_l2, group, near  the arguments of `l2.replay_l2`
    numbers             int64 [4] how many sectors DRAM reads at once (1, 2 or 4), the first line above local memory;
                        then are counted the dirty sectors that were replaced, and those of them of local memory
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
                _serve(l2, to_l2, i, near[sm], group, missed, in_flight, numbers)


def _serve(l2, to_l2, i, near, group, missed, in_flight, numbers):  # type: ignore[no-untyped-def]
    """Serve entry i of `to_l2`, from an SM near to partition `near`."""
    line, operation, request = to_l2.line[i], to_l2.operation[i], to_l2.request[i]
    sets = len(l2.tags) // l2.partitions  # of one partition
    home, row = home_of(line, l2.partitions), even_set_of(line, sets)
    wanted, copied = to_l2.sectors[i], False
    copy, fetch_sectors = near * sets + row, numbers[0]
    if near != home and operation == READ:
        way = way_of(l2.tags, copy, line)
        if way >= 0:
            wanted &= ~l2.valid[copy, way]
            if wanted == 0:
                if l2.fetched_by[copy, way] == group[request]:
                    in_flight[request] = True
                _put(l2, copy, way, 0, line, l2.valid[copy, way], l2.dirty[copy, way], l2.fetched_by[copy, way])
                return
        copied = True
    row += home * sets
    way = way_of(l2.tags, row, line)
    present, changed, fetcher = np.uint8(0), np.uint8(0), np.int64(-1)
    if way >= 0:
        present, changed, fetcher = l2.valid[row, way], l2.dirty[row, way], l2.fetched_by[row, way]
    else:
        way = l2.tags.shape[1] - 1
        _write_back(l2, row, way, numbers)
    if operation != WRITE:
        absent = wanted & ~present
        if absent:
            for first in range(0, 4, fetch_sectors):
                piece = np.uint8(((1 << fetch_sectors) - 1) << first)
                if absent & piece:
                    absent |= piece & ~present
            missed[request] += sectors_in(absent)
            present |= absent
            fetcher = group[request]
        elif fetcher == group[request]:
            in_flight[request] = True
    if operation != READ:
        changed |= to_l2.sectors[i]
    # What the far half alone asks its home for is replaced sooner there (tests/records/h200_l2.json).
    behind = 1 if copied and l2.tags[row, 0] >= 0 else 0
    _put(l2, row, way, behind, line, present | wanted, changed, fetcher)
    if copied:
        way, present = way_of(l2.tags, copy, line), np.uint8(0)
        if way >= 0:
            present = l2.valid[copy, way]
        else:
            way = l2.tags.shape[1] - 1
            _write_back(l2, copy, way, numbers)
        _put(l2, copy, way, 0, line, present | wanted, np.uint8(0), fetcher)


def _write_back(l2, row, way, numbers):  # type: ignore[no-untyped-def]
    """Count the dirty sectors of the line at index `way` of set `row`, which is about to be replaced."""
    dirty = sectors_in(l2.dirty[row, way])
    numbers[2] += dirty
    if l2.tags[row, way] < numbers[1]:
        numbers[3] += dirty


def _put(l2, row, way, to, line, valid, dirty, fetched_by):  # type: ignore[no-untyped-def]
    """Make a line the most recent of set `row` but for `to` others. It replaces the line that was at index `way`."""
    move(l2.tags, row, way, to, line)
    move(l2.valid, row, way, to, valid)
    move(l2.dirty, row, way, to, dirty)
    move(l2.fetched_by, row, way, to, fetched_by)


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
