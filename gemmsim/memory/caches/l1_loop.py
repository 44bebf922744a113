"""The replay of `gemmsim.memory.caches.l1`."""

from __future__ import annotations

import numpy as np
from numba import njit

from gemmsim.memory.caches.lru import sectors_in, set_of
from gemmsim.memory.requests.cache_operations import READ, READ_PAST_L1, WRITE


def replay(  # type: ignore[no-untyped-def]
    sector, shape, kind, pc, warp_start, sector_start, sector_offset, sector_whole,
    group_sm, group_start, group_block, moved, times, phase, shift, warps, entries, caches,
    part_start, part_line, part_mask, part_whole,
    counted, out_line, out_mask, out_kind, out_access, out_start,
):  # fmt: skip
    """Accesses in turn, each line by line.

    kind, pc     of each shape, not of each access: the fewer arrays all warps read from, the less they are in each
                 other's way in this machine's caches
    entries      int64 [sets, ways] line * 16 + valid sectors, -1 where empty; the most recent first
    part_start   int64 [4 * shapes + 1], part_line, part_mask, part_whole int64 [4 * sectors of all shapes]: room for
                 the lines of each shape at each of the four places in a line where its base may be
    counted      int64 [accesses, 2] sectors that hit, and lines asked of L2
    """
    n = np.int64(0)
    for s in range(len(sector_start) - 1):
        for aligned in range(4):
            part_start[4 * s + aligned] = n
            j, end = sector_start[s], sector_start[s + 1]
            while j < end:
                line = (aligned + sector_offset[j]) >> 2
                wanted, whole = np.uint8(0), np.uint8(0)
                while j < end and (aligned + sector_offset[j]) >> 2 == line:
                    bit = np.uint8(1 << ((aligned + sector_offset[j]) & 3))
                    wanted |= bit
                    if sector_whole[j]:
                        whole |= bit
                    j += 1
                part_line[n], part_mask[n], part_whole[n] = line, wanted, whole
                n += 1
    part_start[4 * (len(sector_start) - 1)] = n
    count = 0
    used = 0
    for group in range(len(group_sm)):
        if group and group_sm[group] != group_sm[group - 1]:
            used += 1
            entries[:] = -1
        first, last = group_start[group], group_start[group + 1]
        longest = 0
        for member in range(first, last):
            for warp in range(group_block[member] * warps, (group_block[member] + 1) * warps):
                longest = max(longest, warp_start[warp + 1] - warp_start[warp])
        for turn in range(longest):
            for member in range(first, last):
                counts = times[member]
                for warp in range(group_block[member] * warps, (group_block[member] + 1) * warps):
                    length = warp_start[warp + 1] - warp_start[warp]
                    if turn >= length:
                        continue
                    i = turn + int(phase[member] * length)
                    i += warp_start[warp] - (length if i >= length else 0)
                    of = np.int64(shape[i])
                    base = sector[i] + shift[moved[member], pc[of]]
                    at = 4 * of + (base & 3)
                    does = kind[of]
                    for j in range(part_start[at], part_start[at + 1]):
                        line = (base >> 2) + part_line[j]
                        found = np.int64(0)
                        if caches and does <= WRITE:
                            found = _look_up(entries, line, part_mask[j], part_whole[j], does)
                        if counts == 0:
                            continue
                        counted[i, 0] += counts * sectors_in(found)
                        rest = part_mask[j] & ~found if does == READ else part_mask[j]
                        if rest:
                            counted[i, 1] += counts
                            out_line[count] = line
                            out_mask[count] = rest
                            out_kind[count] = READ if does == READ_PAST_L1 else does
                            out_access[count] = i
                            count += 1
        out_start[used + 1] = count


@njit(inline="always")
def _look_up(entries, line, wanted, whole, kind):  # type: ignore[no-untyped-def]
    """Sectors of `wanted` that hit. A read leaves all of them valid, a write those of `whole`."""
    row = set_of(line, len(entries))
    ways = entries.shape[1]
    way = 0
    while way < ways and entries[row, way] >> 4 != line:
        way += 1
    present, found = np.int64(0), np.int64(0)
    if way < ways:
        present = entries[row, way] & 15
        found = wanted & (present if kind == READ else np.int64(15))
    else:
        way = ways - 1
    for i in range(way, 0, -1):
        entries[row, i] = entries[row, i - 1]
    entries[row, 0] = line << 4 | present | (wanted if kind == READ else whole)
    return found
