"""What an L1 holds, and which line makes room for another one.

An L1 has sets of `l1.ways` tags, and data for as many lines as shared memory leaves of the unified array. The sets lie
in the four tag banks, and each bank has a quarter of the data. Which set a line is in follows from its number by
exclusive or (`l1.set_flips`); the lowest two bits of a set's number are its bank.

Half of a set is kept for lines that were used again since they came: the most recently used of them, whatever comes. In
a full set a new line takes the place of the least recently used one of the others (segmented LRU: one that is kept no
longer counts as used then). A line that is still being fetched is not chosen where there is another one, and its use
does not count as use again.

A bank that holds as many lines as it has data for, less `l1.spare_lines`, loses some at each of its look-ups:
`l1.lost_lines`. For each of them a hand goes on to the next set of the bank that has lines, and that set loses one,
chosen as above. A look-up that brings a line to a set with a free tag lets one be lost before it comes, and the others
afterwards; a set all of whose lines are on their way is passed by, and counts.

Found on an H100 and an H200. After 283 of 300 sequences of one warp's loads and stores, an H100's L1 holds the lines
that it holds here, each looked for in a launch of its own (tests/records/h100_l1_sets.json). One number of each of the
two runs was fitted to that: what bits of the address that are not known, the same for all lines, contribute to the
sets. In the 17 others full sets and lines used again come together; 33 lines differ of 2335 in all sequences of these
two kinds. The lowest 24 bits follow from 45 groups of five lines, drawn at random in 1 GiB of an H200, of which four
displace the fifth: the exclusive ors of bits of a line's number that are equal within every group are those of nine of
them, which is 512 sets. How the sets are numbered follows from the order in which they lose lines, and the bits from 24
on from lines 2 GiB apart. Of 512 and 1024 lines that were read twice, one and two of each set, all stay while 8192
others are read once; of 1536, three of each set, 66.7 %, and of 1920 53.1 %: two of each set
(tests/records/h200_l1_lines.json). Any use makes a line stay: a load of the same sector or of another one, and stores,
in whole and in part. A second load while the first is under way does not.

Where the hand of the hardware is when a launch begins is not known: it stays where the launch before left it. No L1 of
less than 28 KiB was measured; a smaller one has at most a quarter of its lines to spare. Other GPUs are taken to be
alike; one with fewer sets takes as many of the lower bits as it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.caches import L1
from gemmsim.memory.requests.coalescer import LINE_BYTES
from gemmsim.memory.requests.tags import HASHED_BANKS

_LINE_NUMBER_BYTES = 6


@dataclass(frozen=True)
class L1Cache:
    """An L1 cache. It is empty after `l1_cache_loop.empty`.

    bank_lines  of how many lines each bank has the data
    full_lines  with how many lines a bank is full: it loses some at each look-up
    lost_lines  int64 [3] how many: where it hits, where it replaces a line of its set, where it finds a free tag
    fetch_lookups  for how many look-ups, in one turn, a line is on its way
    entries  int64 [sets, ways] line * 32 + 16 if it is kept + valid sectors as bits, -1 where empty
    came     int64 [sets, ways] number of the look-up that brought the line
    used     int64 [sets, ways] number of the look-up that used the line last
    held     int64 [banks] lines that each bank holds
    hand     int64 [banks] which of its sets loses a line next
    state    int64 [2] look-ups, look-ups before this turn
    hash     int64 [6, 256] what each value of each byte of a line's number contributes to its set, by exclusive or
    """

    bank_lines: int
    full_lines: int
    lost_lines: NDArray[np.int64]
    fetch_lookups: int
    entries: NDArray[np.int64]
    came: NDArray[np.int64]
    used: NDArray[np.int64]
    held: NDArray[np.int64]
    hand: NDArray[np.int64]
    state: NDArray[np.int64]
    hash: NDArray[np.int64]


def l1_cache(l1_bytes: int, l1: L1) -> L1Cache:
    """Return an L1 of which shared memory leaves `l1_bytes`.

    There are tags for all of the unified array: in a power of two of sets, and in more ways where it has more lines
    than `l1.ways` of all sets that `l1.set_flips` tells apart.
    """
    tags = -(-l1.unified_bytes // LINE_BYTES)
    bits = min(max(0, -(-tags // l1.ways) - 1).bit_length(), max(l1.set_flips).bit_length())
    shape = (1 << bits, max(l1.ways, -(-tags >> bits)))
    banks = min(HASHED_BANKS, 1 << bits)
    bank_lines = l1_bytes // LINE_BYTES // banks
    entries, came, used = (np.zeros(shape, np.int64) for _ in range(3))
    return L1Cache(
        bank_lines=bank_lines,
        full_lines=max(1, bank_lines - l1.spare_lines, bank_lines * 3 // 4),
        lost_lines=np.array(l1.lost_lines, np.int64),
        fetch_lookups=l1.fetch_lookups,
        entries=entries,
        came=came,
        used=used,
        held=np.zeros(banks, np.int64),
        hand=np.zeros(banks, np.int64),
        state=np.zeros(2, np.int64),
        hash=_hash(l1.set_flips, bits),
    )


def _hash(flips: tuple[int, ...], bits: int) -> NDArray[np.int64]:
    """Return `L1Cache.hash` for 2**bits sets."""
    table = np.zeros((_LINE_NUMBER_BYTES, 256), np.int64)
    values = np.arange(256)
    for bit, flipped in enumerate(flips):
        table[bit // 8] ^= (values >> bit % 8 & 1) * (flipped & ((1 << bits) - 1))
    return table
