"""The compiled loop of `gemmsim.memory.caches.l1`, which replays requests through the L1 caches.

An entry of L1 keeps a line and its valid sectors in one word, and `_look_up` has the LRU replacement. Of `lru`, which
serves the replay of L2, only `set_of` and `sectors_in` are used here.
"""

from __future__ import annotations

import numpy as np

from gemmsim.memory.caches.lru import sectors_in, set_of
from gemmsim.memory.requests.cache_operations import LAST_READ, READ, READ_PAST_L1, WRITE, WRITE_PAST_L1


def replay(requests, residents, coalesced, lines, entries, counted, to_l2):  # type: ignore[no-untyped-def]
    """Complete `lines`, and fill `counted` and `to_l2`. The warps of a group of blocks take turns, one request each.

    requests   `grid.l1_requests.L1Requests`
    residents  `grid.residents.ResidentGroups`
    coalesced  `requests.coalescer.Coalesced`
    lines      `l1.ShapeLines`, of which `operation` and `listed` are filled
    entries    int64 [sets, ways] line * 16 + valid sectors, -1 where empty; the most recent way first
    counted    int64 [requests, 2] sectors that hit, and lines asked of L2
    to_l2      `l1.L2Requests` with enough room
    """
    _fill_lines(coalesced, lines)
    warps = requests.warps_per_block
    used = 0
    for group in range(len(residents.sm)):
        if group and residents.sm[group] != residents.sm[group - 1]:
            used += 1
            entries[:] = -1
        first, last = residents.start[group], residents.start[group + 1]
        longest = 0
        for member in range(first, last):
            for warp in range(residents.block[member] * warps, (residents.block[member] + 1) * warps):
                longest = max(longest, requests.start[warp + 1] - requests.start[warp])
        for turn in range(longest):
            for member in range(first, last):
                for warp in range(residents.block[member] * warps, (residents.block[member] + 1) * warps):
                    length = requests.start[warp + 1] - requests.start[warp]
                    if turn < length:
                        i = turn + int(residents.phase[member] * length)
                        i += requests.start[warp] - (length if i >= length else 0)
                        _request(requests, residents, lines, entries, counted, to_l2, member, i)
        to_l2.start[used + 1] = to_l2.start[-1]


def _request(requests, residents, lines, entries, counted, to_l2, member, i):  # type: ignore[no-untyped-def]
    """Replay request i, made by member `member` of `residents`, line by line. The last element of `to_l2.start` counts
    the entries of `to_l2` that are filled so far.
    """
    count = to_l2.start[-1]
    shape = np.int64(requests.shape[i])
    base = requests.base_sector[i] + residents.offset_sectors[residents.offset_row[member], requests.mover[i]]
    index = 4 * shape + (base & 3)
    operation, times = lines.operation[shape], residents.times[member]
    for j in range(lines.start[index], lines.start[index + 1]):
        line, asked = (base >> 2) + lines.line[j], lines.sectors[j]
        found = np.int64(0)
        if entries.shape[1] and (operation <= WRITE or operation == LAST_READ):
            found = _look_up(entries, line, asked, lines.whole[j], operation)
        if times == 0:
            continue
        counted[i, 0] += times * sectors_in(found)
        rest = asked & ~found if _fetches(operation) else asked
        if rest:
            counted[i, 1] += times
            if lines.listed[shape]:
                to_l2.line[count] = line
                to_l2.sectors[count] = rest
                to_l2.operation[count] = READ if operation == READ_PAST_L1 or _fetches(operation) else operation
                if operation == WRITE_PAST_L1:
                    to_l2.operation[count] = WRITE
                to_l2.request[count] = i
                count += 1
    to_l2.start[-1] = count


def _fetches(operation):  # type: ignore[no-untyped-def]
    """Whether an operation asks L2 for what L1 lacks."""
    if operation == LAST_READ:
        return True
    return operation == READ


def _fill_lines(coalesced, lines):  # type: ignore[no-untyped-def]
    """Fill `start`, `line`, `sectors` and `whole` of `lines`."""
    n = np.int64(0)
    for shape in range(len(lines.operation)):
        for base in range(4):
            lines.start[4 * shape + base] = n
            j, end = coalesced.sector_start[shape], coalesced.sector_start[shape + 1]
            while j < end:
                line = (base + coalesced.sector_offset[j]) >> 2
                asked, whole = np.uint8(0), np.uint8(0)
                while j < end and (base + coalesced.sector_offset[j]) >> 2 == line:
                    bit = np.uint8(1 << ((base + coalesced.sector_offset[j]) & 3))
                    asked |= bit
                    if coalesced.sector_whole[j]:
                        whole |= bit
                    j += 1
                lines.line[n], lines.sectors[n], lines.whole[n] = line, asked, whole
                n += 1
    lines.start[4 * len(lines.operation)] = n


def _look_up(entries, line, asked, whole, operation):  # type: ignore[no-untyped-def]
    """Look up a line and make it the most recent of its set. Return the sectors of `asked` that hit, as bits.

    A line that is absent replaces the least recent one. A read leaves all sectors of `asked` valid, a write those of
    `whole`. A last use leaves the order of a set as it is, and brings no line that is absent.
    """
    row = set_of(line, len(entries))
    ways = entries.shape[1]
    way = 0
    while way < ways and entries[row, way] >> 4 != line:
        way += 1
    present, found, reads = np.int64(0), np.int64(0), _fetches(operation)
    if way < ways:
        present = entries[row, way] & 15
        found = asked & (present if reads else np.int64(15))
    else:
        way = ways - 1
    entry = line << 4 | present | (asked if reads else whole)
    if operation == LAST_READ:
        if present != 0:
            entries[row, way] = entry
        return found
    for i in range(way, 0, -1):
        entries[row, i] = entries[row, i - 1]
    entries[row, 0] = entry
    return found
