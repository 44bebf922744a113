"""The compiled loop of `gemmsim.memory.grid.sector_assignment.round_to_sectors`."""

from __future__ import annotations

import math

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
