"""The replay of `gemmsim.memory.l1`."""

from __future__ import annotations

import numpy as np
from numba import njit

from gemmsim.memory.compiled.lru import move_to_front, sectors_in, set_of, way_of
from gemmsim.memory.kinds import PAST, READ, WRITE


def replay(  # type: ignore[no-untyped-def]
    sector, shape, kind, pc, warp_start, sector_start, sector_offset, sector_whole,
    group_sm, group_start, group_block, moved, times, phase, shift, warps, tags, valid, caches,
    hits, requests, out_line, out_mask, out_kind, out_access, out_start,
):  # fmt: skip
    count = 0
    used = 0
    for group in range(len(group_sm)):
        if group and group_sm[group] != group_sm[group - 1]:
            used += 1
            tags[:] = -1
        first, last = group_start[group], group_start[group + 1]
        longest = 0
        for member in range(first, last):
            for warp in range(group_block[member] * warps, (group_block[member] + 1) * warps):
                longest = max(longest, warp_start[warp + 1] - warp_start[warp])
        for turn in range(longest):
            for member in range(first, last):
                for warp in range(group_block[member] * warps, (group_block[member] + 1) * warps):
                    length = warp_start[warp + 1] - warp_start[warp]
                    if turn >= length:
                        continue
                    i = turn + int(phase[member] * length)
                    i += warp_start[warp] - (length if i >= length else 0)
                    base = sector[i] + shift[moved[member], pc[i]]
                    j, end = sector_start[shape[i]], sector_start[shape[i] + 1]
                    while j < end:
                        line = (base + sector_offset[j]) >> 2
                        wanted, whole = np.uint8(0), np.uint8(0)
                        while j < end and (base + sector_offset[j]) >> 2 == line:
                            bit = np.uint8(1 << ((base + sector_offset[j]) & 3))
                            wanted |= bit
                            if sector_whole[j]:
                                whole |= bit
                            j += 1
                        found = _look_up(tags, valid, caches, line, wanted, whole, kind[i])
                        if not times[member]:
                            continue
                        hits[i] += times[member] * sectors_in(found)
                        rest = wanted & ~found if kind[i] == READ else wanted
                        if rest:
                            requests[i] += times[member]
                            out_line[count] = line
                            out_mask[count] = rest
                            out_kind[count] = READ if kind[i] == PAST else kind[i]
                            out_access[count] = i
                            count += 1
        out_start[used + 1] = count


@njit(inline="always")
def _look_up(tags, valid, caches, line, wanted, whole, kind):  # type: ignore[no-untyped-def]
    """Sectors of `wanted` that hit. A read leaves all of them valid, a write those of `whole`."""
    if not caches or kind > WRITE:
        return np.uint8(0)
    row = set_of(line, len(tags))
    way = way_of(tags, row, line)
    present = valid[row, way] if way >= 0 else np.uint8(0)
    found = wanted & (present if kind == READ else np.uint8(15 if way >= 0 else 0))
    way = way if way >= 0 else tags.shape[1] - 1
    move_to_front(tags, row, way, line)
    move_to_front(valid, row, way, present | (wanted if kind == READ else whole))
    return found
