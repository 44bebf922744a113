"""A table of numbers that are not negative, each in a slot of its own, for the compiled loops of this package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio: neighbours come to slots far apart


def slots_for(numbers: int) -> NDArray[np.int64]:
    """Return slots for so many numbers, at least twice as many as these; any function of this module empties them."""
    return np.empty(1 << max(1, 2 * numbers - 1).bit_length(), np.int64)


def empty_slots(slots):  # type: ignore[no-untyped-def]
    for slot in range(len(slots)):
        slots[slot] = -1


def slot_of(slots, number):  # type: ignore[no-untyped-def]
    """Return the slot that holds a number, or in which it is to be put: one that holds -1."""
    last = len(slots) - 1
    slot = np.int64((np.uint64(number) * _SPREAD) >> np.uint64(32)) & last
    while slots[slot] != -1 and slots[slot] != number:
        slot = (slot + 1) & last
    return slot
