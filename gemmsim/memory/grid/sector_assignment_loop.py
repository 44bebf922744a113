"""The compiled loops of `gemmsim.memory.grid.sector_assignment`."""

from __future__ import annotations

import math

from gemmsim.memory.grid.slots import empty_slots, slot_of

_ROUNDING = 1e-6  # makes sums that are whole but for rounding errors count as whole


def round_sums(amount, pc, total, whole):  # type: ignore[no-untyped-def]
    """Fill `whole`, uint16 [n]: by how much the whole part of the running sum of an instruction grows.

    amount, pc  the parameters of `round_to_sectors`
    total       float64 [instructions], zeros
    """
    for i in range(len(pc)):
        before = math.floor(total[pc[i]] + _ROUNDING)
        total[pc[i]] += amount[i]
        whole[i] = math.floor(total[pc[i]] + _ROUNDING) - before


def find_earliest(number, start, warps_per_block, slots, least, earliest):  # type: ignore[no-untyped-def]
    """Fill `earliest`, bool [requests]: whether no warp of a request's block has made one with its number as its k-th,
    if the request is a later one of its warp than the k-th.

    number                  int64 [requests] not negative
    start, warps_per_block  the fields of `L1Requests`
    slots                   `slots_for` the requests of any block; `least` has as many
    """
    for first in range(0, len(start) - 1, warps_per_block):
        empty_slots(slots)
        for warp in range(first, first + warps_per_block):
            for i in range(start[warp], start[warp + 1]):
                slot, turn = slot_of(slots, number[i]), i - start[warp]
                if slots[slot] < 0 or turn < least[slot]:
                    slots[slot], least[slot] = number[i], turn
        for warp in range(first, first + warps_per_block):
            for i in range(start[warp], start[warp + 1]):
                earliest[i] = i - start[warp] == least[slot_of(slots, number[i])]


def count_new(requests, some, coalesced, slots, new):  # type: ignore[no-untyped-def]
    """Add to `new`, int64 [instructions], how many sectors each instruction is the first to touch.

    requests   `L1Requests`, of which those in `some`, int64 [n], are looked at in this order
    coalesced  their shapes
    slots      `slots_for` all of their sectors
    """
    empty_slots(slots)
    for n in range(len(some)):
        i = some[n]
        first = coalesced.sector_start[requests.shape[i]]
        for place in range(first, first + coalesced.sectors[requests.shape[i]]):
            sector = requests.base_sector[i] + coalesced.sector_offset[place]
            slot = slot_of(slots, sector)
            if slots[slot] < 0:
                slots[slot] = sector
                new[requests.pc[i]] += 1
