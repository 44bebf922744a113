"""Which lines share a set of L1, where the lines lie anywhere: the fast replay equals the slow one.

The accesses of `test_memory` lie in a few KiB, of an L1 of a few sets, so that three bits of a set's number and six of
a line's are all that they depend on. Here the L1 is as large as a GPU's, and lines are chosen that the slow replay puts
into one set, whatever their bits are, and into those sets whose numbers differ from its number by one bit.
"""

from __future__ import annotations

from dataclasses import replace

import memory_twin as twin
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from requests_builder import SECTORS, replayed

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.caches.l1_cache import l1_cache

L1 = load_gpu("h200").l1
LINE_BITS = len(L1.set_flips)
OPERATIONS = ("ld", "ld", "ld", "st", "st")  # what `replayed` does with a line, by number
LINES, ACCESSES = 4096, 200  # lines from which some are chosen, accesses of a warp to these


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(256 << 10, 4), (64 << 10, 1), (32 << 10, 2)]),
    st.sampled_from([8, 32, 512]),
    st.sampled_from([(1, (1, 2, 5)), (0, (0, 0, 1))]),
)
@settings(max_examples=40, deadline=None)
def test_lines_far_apart(seed: int, size: tuple[int, int], lines: int, room: tuple[int, tuple[int, int, int]]) -> None:
    random = np.random.default_rng(seed)
    unified, ways = size
    l1 = replace(L1, unified_bytes=unified, ways=ways, spare_lines=room[0], lost_lines=room[1])
    slow = twin.L1Cache(128 * lines, unified, ways, l1.fetch_lookups, l1.set_flips, *room)
    of_set: dict[int, list[int]] = {}
    for line in random.integers(0, 1 << LINE_BITS, LINES).tolist():
        of_set.setdefault(slow.set_number(line), []).append(line)
    fullest = max(of_set, key=lambda number: len(of_set[number]))
    beside = [fullest ^ 1 << bit for bit in range((len(slow.sets) - 1).bit_length())]
    pool = [*of_set[fullest], *(line for number in beside for line in of_set.get(number, ())[:ways])]
    order = random.choice(pool, ACCESSES) * 8 + random.integers(0, len(OPERATIONS), ACCESSES)
    expected = []
    for turn, (line, what) in enumerate(zip((order // 8).tolist(), (order % 8).tolist(), strict=True)):
        expected.append(not slow.look_up(OPERATIONS[what], line, SECTORS[what], SECTORS[what], turn))
    assert replayed(order, l1_cache(128 * lines, l1)).tolist() == expected


def test_all_bits_take_part() -> None:
    """What the accesses above are to reach: nine bits of a set's number, by each bit of a line's."""
    slow = twin.L1Cache(1 << 18, 1 << 18, 4, 0, L1.set_flips, 0, (0, 0, 1))
    assert len(slow.sets) == 512 and {slow.set_number(1 << bit) for bit in range(LINE_BITS)} == set(L1.set_flips)
