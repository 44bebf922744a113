"""Bits of words of 64, for the compiled loops of this package."""

from __future__ import annotations

import numpy as np


def bits_in(word):  # type: ignore[no-untyped-def]
    """Return how many bits of a word are set: sums of 2, 4 and 8 bits, and of these bytes."""
    pairs = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    fours = (pairs & np.uint64(0x3333333333333333)) + ((pairs >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bytes_ = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bytes_ * np.uint64(0x0101010101010101)) >> np.uint64(56))


def bits_below(at):  # type: ignore[no-untyped-def]
    """Return the bits below one, which is given by its place in any word."""
    return (np.uint64(1) << np.uint64(at & 63)) - np.uint64(1)


def lowest_bit(word):  # type: ignore[no-untyped-def]
    """Return the place of the lowest bit of a word that has any."""
    return bits_in((word & (~word + np.uint64(1))) - np.uint64(1))
