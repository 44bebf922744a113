"""The compiled loop of `gemmsim.memory.caches.l1`, which replays requests through the L1 caches.

What L1 holds and which line is replaced is in `l1_cache_loop`.
"""

from __future__ import annotations

import numpy as np

from gemmsim.memory.caches.l1_cache_loop import begin_turn, empty, fetches, look_up
from gemmsim.memory.caches.lru import sectors_in
from gemmsim.memory.requests.cache_operations import LAST_READ, READ, READ_PAST_L1, WRITE, WRITE_PAST_L1

_MEMBER, _BEGIN, _TURNS = 0, 1, 2  # columns of `places`


def replay(requests, residents, coalesced, lines, cache, places, counted, to_l2):  # type: ignore[no-untyped-def]
    """Complete `lines`, and fill `counted` and `to_l2`. The places of an SM take turns, and at each the warps of its
    block make one request each.

    requests   `grid.l1_requests.L1Requests`
    residents  `grid.residents.Residents`
    coalesced  `requests.coalescer.Coalesced`
    lines      `l1.ShapeLines`, of which `operation` and `listed` are filled
    cache      `l1_cache.L1Cache`
    places     int64 [most places of an SM, 3] the member that is there, the turn in which it begins, how many it takes
    counted    int64 [requests, 2] sectors that hit, and lines asked of L2
    to_l2      `l1.L2Requests` with enough room
    """
    _fill_lines(coalesced, lines)
    for number in range(len(residents.sm)):
        empty(cache)
        first = residents.first_place[number]
        here = residents.first_place[number + 1] - first
        left = np.int64(0)  # members that count and are not at their end
        for place in range(here):
            for member in range(residents.start[first + place], residents.start[first + place + 1]):
                left += residents.times[member] != 0
            _seat(requests, residents, places, place, residents.start[first + place], 0)
        turn = np.int64(0)
        while left > 0:
            begin_turn(cache)
            for place in range(here):
                member = places[place, _MEMBER]
                step = turn - places[place, _BEGIN]
                if member == residents.start[first + place + 1] or step < 0:
                    continue
                if step < places[place, _TURNS]:
                    _make_requests(requests, residents, lines, cache, counted, to_l2, member, step)
                if step + 1 >= places[place, _TURNS]:
                    left -= residents.times[member] != 0
                    _seat(requests, residents, places, place, member + 1, turn + 1)
            turn += 1
        to_l2.start[number + 1] = to_l2.start[-1]


def _seat(requests, residents, places, place, member, turn):  # type: ignore[no-untyped-def]
    """Let a member come to a place that is free from a turn on. Behind the last one of the place nothing comes."""
    places[place, _MEMBER] = member
    if member == len(residents.block):
        return
    warps, longest = requests.warps_per_block, np.int64(0)
    for warp in range(residents.block[member] * warps, (residents.block[member] + 1) * warps):
        longest = max(longest, requests.start[warp + 1] - requests.start[warp])
    places[place, _BEGIN] = turn + np.int64(residents.wait[member] * longest)
    places[place, _TURNS] = longest


def _make_requests(requests, residents, lines, cache, counted, to_l2, member, step):  # type: ignore[no-untyped-def]
    """Replay the request number `step` of each warp of a member."""
    warps = requests.warps_per_block
    for warp in range(residents.block[member] * warps, (residents.block[member] + 1) * warps):
        if step < requests.start[warp + 1] - requests.start[warp]:
            _request(requests, residents, lines, cache, counted, to_l2, member, requests.start[warp] + step)


def _request(requests, residents, lines, cache, counted, to_l2, member, i):  # type: ignore[no-untyped-def]
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
        if cache.bank_lines and (operation <= WRITE or operation == LAST_READ):
            found = look_up(cache, line, asked, lines.whole[j], operation)
        if times == 0:
            continue
        counted[i, 0] += times * sectors_in(found)
        rest = asked & ~found if fetches(operation) else asked
        if rest:
            counted[i, 1] += times
            if lines.listed[shape]:
                to_l2.line[count] = line
                to_l2.sectors[count] = rest
                to_l2.operation[count] = READ if operation == READ_PAST_L1 or fetches(operation) else operation
                if operation == WRITE_PAST_L1:
                    to_l2.operation[count] = WRITE
                to_l2.request[count] = i
                count += 1
    to_l2.start[-1] = count


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
