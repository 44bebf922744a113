"""L1 by hand: one warp's accesses, what hits, and what goes to L2."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from requests_builder import coalesced_of, requests_of
from trace_builder import Accesses, Lanes, launch, program, warp_trace

from gemmsim.gpu.caches import L1
from gemmsim.gpu.load import load_gpu
from gemmsim.memory.caches.l1 import replay_l1
from gemmsim.memory.caches.l1_cache import l1_cache
from gemmsim.memory.grid.residents import Residents
from gemmsim.memory.requests.cache_operations import READ
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic

GPU = load_gpu("h200")
LOAD, STORE, ADD, COPY, PAST = range(5)
PROGRAM = program("LDG.E", "STG.E", "RED.E.ADD", "LDGSTS.E", "LDGSTS.E.BYPASS.128")
FULLY_ASSOCIATIVE = 4  # lines, one set


def line(number: int) -> Lanes:
    """A packed access to one 128-byte line: four sectors."""
    return [128 * number + 4 * lane for lane in range(32)]


def sector(number: int) -> Lanes:
    return [32 * number] * 32


def l1_of(lines: int, **changed: object) -> L1:
    """An L1 of so many lines, which loses none before it has no room."""
    none = {"spare_lines": 0, "lost_lines": (0, 0, 1)}
    return replace(GPU.l1, unified_bytes=128 * lines, **none | changed)


def served(*blocks: list[Accesses], sms: int = 1, resident: int = 1) -> Traffic:
    """Blocks 0, 1, ...: what their warps access, on an L1 of four lines."""
    gpu = replace(GPU, sm=replace(GPU.sm, count=sms), l1=l1_of(4, ways=FULLY_ASSOCIATIVE))
    trace = warp_trace(5, dict(enumerate(blocks)))
    return serve(PROGRAM, launch((len(blocks), 1, 1)), trace, gpu, 4 * 128, resident)


def hits(traffic: Traffic, op: str = "ld") -> float:
    return traffic.counters[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}_lookup_hit.sum"]


def loads(*numbers: int) -> Accesses:
    return [(LOAD, line(n)) for n in numbers]


def test_only_missing_sectors_are_fetched() -> None:
    traffic = served([[(LOAD, sector(1)), (LOAD, line(0)), (LOAD, line(0))]])
    assert traffic.cost.l2_sectors.tolist() == [1, 3, 0]
    assert hits(traffic) == 0 + 1 + 4


def test_the_least_recently_used_line_is_replaced() -> None:
    # After 0 1 2 3 and 0 again, 4 takes the place of 1.
    assert served([loads(0, 1, 2, 3, 0, 4, 0, 1)]).cost.l2_sectors.tolist() == [4, 4, 4, 4, 0, 4, 0, 4]


@pytest.mark.parametrize("again", [(LOAD, 0), (LOAD, 1), (STORE, 0), (STORE, 1)])
def test_a_line_that_was_used_again_stays(again: tuple[int, int]) -> None:
    """However it is used again, by a load or a store, of the same sector or of another one; lines used once go."""
    op, which = again
    once = loads(0, 1, 2, 3, 4, 5, 6, 7)
    after = [(LOAD, sector(36)), (op, sector(36 + which)), *once, (LOAD, sector(36)), *loads(7, 6, 5, 4)]
    assert served([after]).cost.l2_sectors.tolist()[10:] == [0, 0, 0, 0, 4]


def test_half_of_a_set_is_kept() -> None:
    """Of three lines that were used again, 0 was so first: it is kept no longer, and goes behind 3; 1 and 2 stay."""
    twice = loads(0, 1, 2, 3, 0, 1, 2)
    once = loads(4, 5, 6, 7)
    assert served([[*twice, *once, *loads(1, 2, 0)]]).cost.l2_sectors.tolist()[11:] == [0, 0, 4]
    assert served([[*twice, *loads(4, 0)]]).cost.l2_sectors.tolist()[7:] == [4, 0]
    assert served([[*twice, *loads(4, 3)]]).cost.l2_sectors.tolist()[7:] == [4, 4]


def test_what_comes_while_a_line_is_fetched_is_no_use_again() -> None:
    """Two warps ask for line 0 in the same turn; 9 others follow, and it is gone. Asked for a turn later it stays."""
    others = [8, 9, 10, 11, 12]
    together = served([loads(0, *others, 0), loads(0, *others, 0)]).cost.l2_sectors.tolist()
    apart = served([loads(0, *others, 0), loads(8, 0, 9, 10, 11, 12, 0)]).cost.l2_sectors.tolist()
    assert (together[6], together[13]) == (4, 0) and (apart[6], apart[13]) == (0, 0)


BANKED = (
    1,
    2,
    4,
)  # the set of lines 0 to 7 is their number: with banks 0, 1, 2, 3, a bank's sets 0 and 4, 1 and 5, ...


def found(lines: int, lost: tuple[int, int, int], *numbers: int, spare: int = 0) -> list[int]:
    """Which lines, read one after another, hit in eight sets of four ways with room for `lines` of each bank."""
    gpu = replace(GPU, l1=l1_of(32, set_flips=BANKED, spare_lines=spare, lost_lines=lost))
    trace = warp_trace(5, {0: [loads(*numbers)]})
    return [int(s == 0) for s in serve(PROGRAM, launch(), trace, gpu, 4 * lines * 128, 1).cost.l2_sectors.tolist()]


@pytest.mark.parametrize("lost", [0, 4, 12, 8])
def test_a_bank_without_room_loses_lines_of_its_sets_in_turn(lost: int) -> None:
    """Lines 0, 8 and 16 are of set 0 of bank 0, 4 and 12 of its other one. With 0, 8, 4 and 12 there, 16 takes the
    place of 0, 20 that of 4, 24 that of 8, and 28 that of 12. Lines of other banks have their own room."""
    there = [0, 8, 4, 12, 1, 2, 3]
    came = {0: [16], 4: [16, 20], 8: [16, 20, 24], 12: [16, 20, 24, 28]}[lost]
    others = [line for line in there if line not in (0, 4, 8, 12)] + came
    assert found(4, (0, 0, 1), *there, *came, *others, lost)[len(there) + len(came) :] == [1] * len(others) + [0]


def test_how_many_lines_a_full_bank_loses() -> None:
    """Room for three of a bank's lines and one to spare. At a line that hits it loses one: 0. At a new one it loses one
    before and two after: 0, 4, 8. Where all tags of a set are in use, it loses what is replaced, 0, and two more: 8 of
    the same set and 4 of the other one."""
    assert found(4, (1, 0, 0), 0, 4, 8, 8, 4, 8, 0, spare=1)[4:] == [1, 1, 0]
    assert found(4, (0, 0, 3), 0, 4, 8, 12, 12, 8, spare=1)[4:] == [1, 0]
    assert found(4, (0, 0, 3), 0, 4, 8, 12, 12, 4, spare=1)[4:] == [1, 0]
    full = [0, 4, 8, 16, 24, 32]  # 0, 8, 16 and 24 are all of set 0, and 32 replaces 0
    assert found(6, (0, 2, 0), *full, 32, 16, 24, 8, spare=1)[len(full) :] == [1, 1, 1, 0]
    assert found(6, (0, 2, 0), *full, 32, 16, 24, 4, spare=1)[len(full) :] == [1, 1, 1, 0]


def test_a_set_whose_only_line_is_on_its_way_loses_none() -> None:
    """Room for two lines of a bank, and 0 and 8 are there, of one set. The hand stands before it: 4, of the other set,
    lets it lose 0 before it comes and nothing of its own set afterwards."""
    assert found(2, (0, 0, 2), 0, 8, 4, 4, 8, 0)[3:] == [1, 1, 0]


def test_a_small_l1_keeps_most_of_its_lines() -> None:
    """Eight of each bank, of which 13 would be to spare: three quarters of them may be there, and five are."""
    gpu = replace(GPU, l1=replace(GPU.l1, unified_bytes=64 * 128))
    trace = warp_trace(5, {0: [loads(*range(20), *range(20))]})
    assert serve(PROGRAM, launch(), trace, gpu, 32 * 128, 1).cost.l2_sectors.tolist() == [4] * 20 + [0] * 20


def test_stores_are_written_through_and_allocate() -> None:
    """What a store wrote is there for loads and stores; all of it goes to L2 all the same."""
    traffic = served([[(STORE, line(0)), (LOAD, line(0)), (STORE, line(0)), (LOAD, line(1)), (STORE, line(1))]])
    assert traffic.cost.l2_sectors.tolist() == [4, 0, 4, 4, 4]
    assert (hits(traffic), hits(traffic, "st")) == (4, 8)
    assert traffic.counters["l1tex__m_l1tex2xbar_write_sectors.sum"] == 12
    assert traffic.counters["l1tex__m_xbar2l1tex_read_sectors.sum"] == 4


def test_a_store_hits_by_line_and_a_load_by_sector() -> None:
    """Sector 0 is stored, then sector 1 of the same line; sector 2 was not, and is fetched."""
    traffic = served([[*((STORE, [32 * s + lane for lane in range(0, 32, 4)] * 4) for s in (0, 1)), (LOAD, line(0))]])
    assert hits(traffic, "st") == 1
    assert traffic.cost.l2_sectors.tolist() == [1, 1, 2]


def test_a_sector_written_in_part_is_not_there() -> None:
    traffic = served([[(STORE, sector(0)), (LOAD, sector(0)), (STORE, sector(0)), (LOAD, sector(0))]])
    assert traffic.cost.l2_sectors.tolist() == [1, 1, 1, 0]


def test_a_store_replaces_the_least_recently_used_line() -> None:
    after = [*loads(0, 1, 2, 3), (STORE, line(9)), *loads(0, 3)]
    assert served([after]).cost.l2_sectors.tolist() == [4, 4, 4, 4, 4, 4, 0]


def test_atomics_pass_by() -> None:
    traffic = served([[(LOAD, line(0)), (ADD, line(0)), (LOAD, line(0))]])
    assert traffic.cost.l2_sectors.tolist() == [4, 4, 0]
    assert hits(traffic, "red") == 0


def test_copies_to_shared_memory_are_loads() -> None:
    assert served([[(COPY, line(0)), (COPY, line(0))]]).cost.l2_sectors.tolist() == [4, 0]


def test_copies_that_bypass_l1_find_and_leave_nothing() -> None:
    traffic = served([[(PAST, line(0)), (LOAD, line(0)), (PAST, line(0)), (LOAD, line(0))]])
    assert traffic.cost.l2_sectors.tolist() == [4, 4, 4, 0]
    assert traffic.counters["l1tex__m_xbar2l1tex_read_sectors.sum"] == 12
    assert traffic.cost.dram_sectors.tolist() == [4, 0, 0, 0]  # reads in L2, which leave nothing to write back


def test_warps_take_turns() -> None:
    # Four lines hold the two warps' first two lines; in turns 0 8 1 9 all reuse hits, one warp after the other too,
    # but with three lines a warp the turns 0 8 1 9 2 10 evict 0 before it is used again.
    two = [loads(0, 1, 0, 1), loads(8, 9, 8, 9)]
    three = [loads(0, 1, 2, 0), loads(8, 9, 10, 8)]
    assert hits(served(two)) == 4 * 4
    assert hits(served(three)) == 0
    assert hits(served([three[0]])) == 4


def test_resident_blocks_share_the_l1_and_later_ones_find_it_warm() -> None:
    block = [loads(0, 1)]
    together = served(block, block, resident=2)
    assert together.cost.l2_sectors.tolist() == [4, 4, 0, 0]
    after = served(block, block, resident=1)
    assert after.cost.l2_sectors.tolist() == [4, 4, 0, 0]
    apart = served(block, block, sms=2)
    assert apart.cost.l2_sectors.tolist() == [4, 4, 4, 4]


def test_no_l1_at_all() -> None:
    trace = warp_trace(5, {0: [loads(0, 0)]})
    assert serve(PROGRAM, launch(), trace, GPU, 0, 1).cost.l2_sectors.tolist() == [4, 4]


def test_power_of_two_strides_spread_over_the_sets() -> None:
    """A column of a 4096 matrix, 32 lines 16 KB apart, stays in an L1 of 32 lines in 8 sets: see `l1_cache`."""
    column: Lanes = [16384 * lane for lane in range(32)]
    gpu = replace(GPU, l1=l1_of(32))
    trace = warp_trace(5, {0: [[(LOAD, column), (LOAD, column)]]})
    assert serve(PROGRAM, launch(), trace, gpu, 32 * 128, 1).cost.l2_sectors.tolist() == [32, 0]


def test_what_is_asked_of_l2_is_listed_only_for_shapes_of_which_it_is_wanted() -> None:
    """Four requests of one sector, of two shapes in turn, of which the first two miss."""
    nothing = np.zeros(4, np.int64)
    requests = requests_of(np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1]), nothing, np.array([READ, READ]), 1, 1)
    one = np.array([0, 1])
    residents = Residents(nothing[:1], one, one, *(nothing[:1],) * 2, np.ones(1, int), np.zeros(1), nothing[:1, None])
    for wanted, listed in ((None, [0, 1]), ([True, False], [0]), ([False, True], [1]), ([False] * 2, [])):
        mask = None if wanted is None else np.array(wanted)
        found = replay_l1(requests, residents, coalesced_of([[0], [0]]), l1_cache(512, l1_of(4)), mask)
        assert found.hits.tolist() == [0, 0, 1, 1] and found.l2_requests.tolist() == [1, 1, 0, 0]
        assert found.to_l2.request.tolist() == listed and found.to_l2.start.tolist() == [0, len(listed)]
        assert (4 * found.to_l2.line).tolist() == [0] * len(listed)


def test_what_hits_l1_comes_from_no_run() -> None:
    """Runs of 256 bytes: eight rows of 64 bytes are eight of them, 512 bytes in a row two. Where half of the rows hit
    L1, four are left, and where all do, none."""
    rows = [(lane // 4) * 1024 + lane % 4 * 16 for lane in range(32)]
    half: list[int | None] = [address if lane < 16 else None for lane, address in enumerate(rows)]
    packed = [1 << 20 | 16 * lane for lane in range(32)]
    trace = warp_trace(1, {0: [[(0, half), (0, rows), (0, rows), (0, packed)]]})
    traffic = serve(program("LDG.E.128"), launch((1, 1, 1)), trace, load_gpu("h200"), 1 << 15, 1)
    assert traffic.cost.runs.tolist() == [4, 4, 0, 2]
