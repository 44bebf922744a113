"""Small numbers worked out by hand for lines at which a change to the code had gone unnoticed (`make mutants`)."""

from __future__ import annotations

import numpy as np
from opcode_harness import program

from gemmsim.memory.counters import Counters, _multiplications
from gemmsim.memory.grid.bitmap import Groups
from gemmsim.memory.grid.footprint import Visits, _copies_per_line
from gemmsim.memory.grid.placement import Placement
from gemmsim.memory.grid.sample_residents import _draw
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.cache_operations import ATOMIC, READ, WRITE
from gemmsim.memory.requests.lane_wavefronts import lane_wavefronts
from gemmsim.trace.types import Relation


def test_lanes_that_are_two_words_apart() -> None:
    """Lane l wants word 2 l, of bank 2 l modulo 32: lanes 0 to 15 come first, and lanes 16 to 31 want their banks."""
    offsets = np.arange(32)[None] * 8
    served = lane_wavefronts(offsets, np.ones((1, 32), bool), Access("shared", "ld", 4))
    assert served[0].tolist() == [0] * 16 + [1] * 16


def test_copies_of_a_line_in_the_other_partition() -> None:
    """List 0 has two reads, list 1 an atomic, or a store of what is evicted first. Two blocks read list 0: that none of
    them is near the other partition has a chance of 1/4. One and a half of the three sectors touched have a copy. An
    ordinary store by one block leaves one with a chance of 1/2."""
    entries, pc = np.array([2, 1]), np.array([0, 1])
    groups = Groups(np.array([0, 1]), pc, np.array([READ, ATOMIC]), entries)
    stores = Groups(np.array([0, 1]), pc, np.array([READ, WRITE]), entries)
    never, once = np.array([False, False]), np.array([False, True])
    zeros = np.zeros(2, np.int64)
    visits = Visits(zeros, np.array([0, 1]), zeros, np.array([2, 1]))
    assert _copies_per_line(visits, groups, 2, never) == 1 + 2 * 0.75 / 3
    assert _copies_per_line(visits, stores, 2, once) == 1 + 2 * 0.75 / 3
    assert _copies_per_line(visits, stores, 2, never) == 1 + (2 * 0.75 + 0.5) / 3
    assert _copies_per_line(visits, groups, 1, never) == 1


def test_wavefronts_of_wgmma() -> None:
    """A of 64 rows and B of 8 columns, 32 bytes deep: 2304 bytes, 18 wavefronts of 128 for four warps together."""
    code, out = program("HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0", "sm_90"), Counters()
    shared, all_of_lsu = (f"l1tex__data_pipe_lsu_wavefronts{what}.sum" for what in ("_mem_shared", ""))
    out.value |= {shared: 5.0, all_of_lsu: 7.0}
    executed = np.zeros(len(code.instructions))
    executed[0] = 12
    _multiplications(out, code, executed)
    assert out.value["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"] == 3 * 18
    assert (out.value[shared], out.value[all_of_lsu]) == (5 + 54, 7 + 54)


def test_groups_that_stand_for_the_most_blocks_come_first() -> None:
    """Three groups of one block, and one of two: three blocks before two."""
    relation = Relation(np.zeros(5, np.int64), np.zeros(0, np.int32), np.zeros((1, 5), np.int64), np.zeros(1), False)
    placement = Placement(np.array([0, 1, 2, 3, 3]), np.zeros(5, np.int64), np.zeros(4, np.int64), 2)
    found = _draw(relation, placement)
    assert [(len(placement.group(one.sm, one.generation)), one.times) for one in found] == [(1, 3), (2, 1)]
