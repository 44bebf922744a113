"""The replay of `gemmsim.memory.caches.l2`."""

from __future__ import annotations

import numpy as np
from numba import njit

from gemmsim.memory.caches.lru import home_of, move_to_front, sectors_in, set_of, way_of
from gemmsim.memory.requests.cache_operations import READ, WRITE


def replay(  # type: ignore[no-untyped-def]
    line, mask, kind, access, start, near, partitions, tags, valid, dirty, fetched_by, group, fetch, missed, in_flight,
):  # fmt: skip
    written = 0
    sets = len(tags) // partitions  # of one partition
    sms = len(start) - 1
    step = _step(sms)
    longest = 0
    for sm in range(sms):
        longest = max(longest, start[sm + 1] - start[sm])
    for turn in range(longest):
        for after in range(sms):
            sm = (turn + after * step) % sms
            i = start[sm] + turn
            if i >= start[sm + 1]:
                continue
            home, row = home_of(line[i], partitions), set_of(line[i], sets)
            wanted, copied = mask[i], False
            copy = near[sm] * sets + row
            if near[sm] != home and kind[i] == READ:
                way = way_of(tags, copy, line[i])
                if way >= 0:
                    wanted &= ~valid[copy, way]
                    if wanted == 0:
                        if fetched_by[copy, way] == group[access[i]]:
                            in_flight[access[i]] = True
                        move_to_front(tags, copy, way, line[i])
                        move_to_front(valid, copy, way, valid[copy, way])
                        move_to_front(dirty, copy, way, dirty[copy, way])
                        move_to_front(fetched_by, copy, way, fetched_by[copy, way])
                        continue
                copied = True
            row += home * sets
            way = way_of(tags, row, line[i])
            present, changed = np.uint8(0), np.uint8(0)
            fetcher = np.int64(-1)
            if way >= 0:
                present, changed, fetcher = valid[row, way], dirty[row, way], fetched_by[row, way]
            else:
                way = tags.shape[1] - 1
                written += sectors_in(dirty[row, way])
            if kind[i] != WRITE:
                absent = wanted & ~present
                if absent:
                    for first in range(0, 4, fetch):
                        whole = np.uint8(((1 << fetch) - 1) << first)
                        if absent & whole:
                            absent |= whole & ~present
                    missed[access[i]] += sectors_in(absent)
                    present |= absent
                    fetcher = group[access[i]]
                elif fetcher == group[access[i]]:
                    in_flight[access[i]] = True
            if kind[i] != READ:
                changed |= mask[i]
            move_to_front(tags, row, way, line[i])
            move_to_front(valid, row, way, present | wanted)
            move_to_front(dirty, row, way, changed)
            move_to_front(fetched_by, row, way, fetcher)
            if copied:
                way, present = way_of(tags, copy, line[i]), np.uint8(0)
                if way >= 0:
                    present = valid[copy, way]
                else:
                    way = tags.shape[1] - 1
                    written += sectors_in(dirty[copy, way])
                move_to_front(tags, copy, way, line[i])
                move_to_front(valid, copy, way, present | wanted)
                move_to_front(dirty, copy, way, np.uint8(0))
                move_to_front(fetched_by, copy, way, fetcher)
    return written


@njit(inline="always")
def _step(sms):  # type: ignore[no-untyped-def]
    """How far apart SMs are that come one after the other: all come once, and neighbours apart from each other."""
    step = sms * 618 // 1000 + 1
    while _common(step, sms) > 1:
        step += 1
    return step


@njit(inline="always")
def _common(a, b):  # type: ignore[no-untyped-def]
    """Greatest common divisor."""
    while b > 0:
        a, b = b, a % b
    return a
