"""What an L1 holds, and which line makes room for another one.

An L1 has tags for `ways` lines in each of its sets, and room for as many lines as shared memory leaves of the unified
array. Half of a set is kept for lines that were used again since they came: the most recently used of them, whatever
comes. A new line takes the place of the least recently used one of the others (segmented LRU: one that is kept no
longer counts as used then). If the set has a tag to spare and there is no room, another set loses a line, chosen in the
same way; the sets take turns. A line that is still being fetched is not chosen where there is another one, and its use
does not count as use again.

Found on an H200 (tests/records/h200_l1_lines.json: one warp reads or stores lines one after another, and times each
read). Lines drawn at random are lost to four others (39 of 42; of the same set), and so are those of no set where as
many others come as there is room for. 512 lines drawn at random lose 1 % of their hits when they are read over and
over, 1024 lines 13 %, 2048 lines 57 %, as 512 sets of four give; lines 2^k apart, for k up to 12, lose none, so that
sets follow from line numbers by exclusive or. Of 512 and 1024 lines that were read twice, one and two of each set, all
stay while 8192 others are read once; of 1536, three of each set, 66.7 %, and of 1920 53.1 %: two of each set. Any use
makes a line stay: a load of the same sector or of another one, and stores, in whole and in part. A second load while
the first is under way does not.

The hash of the hardware is not known. Ours takes the number of a line as a polynomial over two elements, modulo a
primitive one: any aligned 2^n lines fall into all 2^n sets evenly, and so do those 2, 4, 8 ... apart. (By line number
modulo the sets, a column of A in a naive 4096 GEMM would be in one set; a T4 finds 97.3 % of its sectors in L1,
dmalt/SGEMM_CUDA.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import L1
from gemmsim.memory.requests.coalescer import LINE_BYTES

_LINE_NUMBER_BYTES = 6
# Primitive polynomials over GF(2) of degrees 0 to 12: bit i is the coefficient of x^i. Those of degrees 6 to 10 are
# among the four under which eight rows of 2^k lines at equal distances, as blocks of an SM read them, fall into the
# same sets least.
_POLYNOMIALS = (0x1, 0x3, 0x7, 0xB, 0x19, 0x37, 0x73, 0xCB, 0x1E7, 0x3E9, 0x74D, 0x8E7, 0x10EB)


@dataclass(frozen=True)
class L1Cache:
    """An L1 cache. It is empty after `l1_cache_loop.empty`.

    lines    how many lines it has room for
    fetch_lookups  for how many look-ups, in one turn, a line is on its way
    entries  int64 [sets, ways] line * 32 + 16 if it is kept + valid sectors as bits, -1 where empty
    came     int64 [sets, ways] number of the look-up that brought the line
    used     int64 [sets, ways] number of the look-up that used the line last
    state    int64 [4] lines held, the set that lost a line for another one last, look-ups, look-ups before this turn
    hash     int64 [6, 256] what each value of each byte of a line's number contributes to its set, by exclusive or
    """

    lines: int
    fetch_lookups: int
    entries: NDArray[np.int64]
    came: NDArray[np.int64]
    used: NDArray[np.int64]
    state: NDArray[np.int64]
    hash: NDArray[np.int64]


def l1_cache(l1_bytes: int, l1: L1) -> L1Cache:
    """Return an L1 of which shared memory leaves `l1_bytes`.

    There are tags for all of the unified array, rounded up to a power of two, but no more than 4096 sets.
    """
    degree = max(0, l1.unified_bytes // (LINE_BYTES * l1.ways) - 1).bit_length()
    degree = min(degree, len(_POLYNOMIALS) - 1)
    shape = (1 << degree, l1.ways)
    entries, came, used = (np.zeros(shape, np.int64) for _ in range(3))
    return L1Cache(l1_bytes // LINE_BYTES, l1.fetch_lookups, entries, came, used, np.zeros(4, np.int64), _hash(degree))


def _hash(degree: int) -> NDArray[np.int64]:
    """Return `L1Cache.hash` for 2**degree sets."""
    of_bit, power = [], 1 if degree else 0
    for _ in range(8 * _LINE_NUMBER_BYTES):
        of_bit.append(power)
        power <<= 1
        if power >> degree:
            power ^= _POLYNOMIALS[degree]
    table = np.zeros((_LINE_NUMBER_BYTES, 256), np.int64)
    values = np.arange(256)
    for bit, contributes in enumerate(of_bit):
        table[bit // 8] ^= (values >> bit % 8 & 1) * contributes
    return table
