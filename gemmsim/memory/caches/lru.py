"""A set-associative cache with sectored lines and LRU replacement: functions over arrays, for the replay of L2.

The replay of L1 takes only `sectors_in` from here: what an L1 keeps is in `l1_cache`.

The state of L2 is `tags`, int64 [sets, ways], -1 where empty, and one or more masks, uint8 [sets, ways], in which
bit s is for sector s of the line. The ways of a set are in the order of use, the most recent first. A hit moves its
line to the front, and a miss replaces the last.
"""

from __future__ import annotations

import numpy as np


def even_set_of(line, sets):  # type: ignore[no-untyped-def]
    """Return the set of a line of L2: the part behind the point of its number times the golden ratio, times the sets.

    Lines one after another fall into all sets evenly, as those of an array fill the L2 of an H200: of 30 MiB that SMs
    near to both of its partitions read over and over, which are 60 MiB there, 18 % are lost, of 28 MiB 0.3 %
    (tests/records/h200_l2.json). Sets drawn at random would lose 39 and 16 %.
    """
    part = (np.uint64(line) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return np.int64((part * np.uint64(sets)) >> np.uint64(32))


def home_of(line, partitions):  # type: ignore[no-untyped-def]
    """Return the L2 partition that a line belongs to: the highest bits of its number mixed with MurmurHash3's finalizer
    (without its last step, which they do not need). So homes are as good as drawn at random.
    """
    mixed = np.uint64(line)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64(mixed >> np.uint64(59)) % partitions


def way_of(tags, row, line):  # type: ignore[no-untyped-def]
    """Return the index of `line` in set `row` (its way), or -1 where the set does not hold it."""
    for way in range(tags.shape[1]):
        if tags[row, way] == line:
            return way
    return -1


def move(array, row, way, to, value):  # type: ignore[no-untyped-def]
    """Put `value` at index `to` of set `row` of `array`. The entries from there to index `way` move by one to make
    room, and that at `way` is lost."""
    for i in range(way, to, -1):
        array[row, i] = array[row, i - 1]
    for i in range(way, to):
        array[row, i] = array[row, i + 1]
    array[row, to] = value


def sectors_in(mask):  # type: ignore[no-untyped-def]
    """Return how many sectors a mask contains: how many of its bits are set."""
    return (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1) + (mask >> 3 & 1)
