"""The replay of `gemmsim.memory.l2`."""

from __future__ import annotations

import numpy as np

from gemmsim.memory.compiled.lru import move_to_front, sectors_in, set_of, way_of
from gemmsim.memory.kinds import READ, WRITE


def replay(  # type: ignore[no-untyped-def]
    line, mask, kind, access, start, tags, valid, dirty, fetched_by, group, fetch, missed, in_flight,
):  # fmt: skip
    written = 0
    sms = len(start) - 1
    longest = 0
    for sm in range(sms):
        longest = max(longest, start[sm + 1] - start[sm])
    for turn in range(longest):
        for sm in range(sms):
            i = start[sm] + turn
            if i >= start[sm + 1]:
                continue
            row = set_of(line[i], len(tags))
            way = way_of(tags, row, line[i])
            present, changed = np.uint8(0), np.uint8(0)
            fetcher = np.int64(-1)
            if way >= 0:
                present, changed, fetcher = valid[row, way], dirty[row, way], fetched_by[row, way]
            else:
                way = tags.shape[1] - 1
                written += sectors_in(dirty[row, way])
            if kind[i] != WRITE:
                absent = mask[i] & ~present
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
            move_to_front(valid, row, way, present | mask[i])
            move_to_front(dirty, row, way, changed)
            move_to_front(fetched_by, row, way, fetcher)
    return written
