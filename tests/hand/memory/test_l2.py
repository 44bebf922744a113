"""L2 and DRAM by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import Accesses, Lanes, launch, program, warp_trace

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.caches.l2 import L2Start
from gemmsim.memory.caches.lru import home_of
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.support.errors import GemmsimError

GPU = load_gpu("h200")
LOAD, STORE, ADD, LOAD_FIRST, STORE_FIRST = range(5)
PROGRAM = program("LDG.E", "STG.E", "RED.E.ADD", "LDG.E.EF", "STG.E.EF")


def line(number: int) -> Lanes:
    return [128 * number + 4 * lane for lane in range(32)]


def served(*blocks: list[Accesses], lines: int = 2, warm: L2Start = False, dirty: float = 1.0) -> Traffic:
    """One block a SM, no L1, an L2 of one partition, one set of `lines` lines, no requests that merge."""
    l2 = replace(GPU.l2, size_bytes=128 * lines, ways=lines, partitions=1, merged_requests=1, dirty_share=dirty)
    gpu = replace(GPU, l2=l2)
    return serve(PROGRAM, launch((len(blocks), 1, 1)), warp_trace(5, dict(enumerate(blocks))), gpu, 0, 1, warm)


def test_what_one_sm_fetched_another_finds() -> None:
    traffic = served([[(LOAD, line(0))]], [[(LOAD, line(0))]])
    assert traffic.cost.dram_sectors.tolist() == [4, 0]
    assert traffic.counters["lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"] == 4
    assert traffic.counters["dram__bytes_read.sum"] == 128


def test_two_sectors_are_fetched_at_once() -> None:
    # A row of one sector a step, as a tile 8 floats wide goes along it: every other one is there.
    def sector(n: int) -> Lanes:
        return [32 * n + 4 * (lane % 8) for lane in range(32)]

    traffic = served([[(LOAD, sector(n)) for n in (0, 1, 3, 2)]])
    assert traffic.cost.l2_sectors.tolist() == [1, 1, 1, 1]
    assert traffic.cost.dram_sectors.tolist() == [2, 0, 2, 0]
    assert traffic.counters["dram__sectors_read.sum"] == 4


def test_a_partition_keeps_copies_of_what_belongs_to_the_other() -> None:
    """Two partitions of a line each. SM 0 is near to the first: a line of the second is copied there, and replaces
    what belongs there; at home nothing is lost."""
    gpu = replace(GPU, l2=replace(GPU.l2, size_bytes=2 * 128, ways=1, partitions=2, merged_requests=1))
    with np.errstate(over="ignore"):  # the hash is of 64 bits
        near, far = (next(n for n in range(99) if home_of(np.int64(n), 2) == half) for half in (0, 1))

    def dram(*blocks: list[Accesses]) -> list[int]:
        traced = warp_trace(5, dict(enumerate(blocks)))
        return serve(PROGRAM, launch((len(blocks), 1, 1)), traced, gpu, 0, 1).cost.dram_sectors.tolist()

    reads = [(LOAD, line(near)), (LOAD, line(far)), (LOAD, line(far)), (LOAD, line(near))]
    assert dram([reads]) == [4, 4, 0, 4]  # the copy of `far` has replaced `near`
    assert dram([[(LOAD, line(far)), (LOAD, line(near)), (LOAD, line(far))]]) == [4, 4, 0]  # found at home
    assert dram([[(STORE, line(far)), (LOAD, line(near)), (STORE, line(far))]]) == [2, 4, 2]  # written in the end
    assert dram([[(LOAD, line(near)), (STORE, line(far)), (LOAD, line(near))]]) == [4, 4, 4]  # stores leave a copy, too
    assert dram([[(LOAD, line(near)), (STORE_FIRST, line(far)), (LOAD, line(near))]]) == [4, 4, 0]  # these do not
    # SM 1 is near to the second. In turns: `far` comes to both halves, `near` replaces it in both; `far` comes again,
    # to SM 1, whose turn it is to begin. Both wait in the first turn; of the second each has half.
    two = [[(LOAD, line(far)), (LOAD, line(far))], [(LOAD, line(near)), (LOAD, line(far))]]
    assert dram([two[0]], [two[1]]) == [4, 4, 4, 0]


def test_sms_take_turns() -> None:
    # In turns: 0 0 1 1 2 2 0 0. The first of each pair misses, whatever came before (two lines hold two of three); that
    # is one SM, then the other. Whichever it is, each block has half of what DRAM reads in each turn.
    block = [[(LOAD, line(n)) for n in (0, 1, 2, 0)]]
    assert served(block, block).cost.dram_sectors.tolist() == [4, 0, 4, 0, 4, 0, 4, 0]


def test_blocks_of_a_wave_have_equal_shares_of_what_dram_reads() -> None:
    """Two SMs begin in turn. Both load line 0 twice and line 1 twice, so that the first SM is the first at both lines.
    On a GPU it could be the other: each waits for DRAM once, and once for a line that is on its way."""
    block = [[(LOAD, line(n)) for n in (0, 0, 1, 1)]]
    traffic = served(block, block)
    assert traffic.cost.dram_sectors.tolist() == [4, 0, 0, 0, 4, 0, 0, 0]
    assert traffic.cost.dram_shared.tolist() == [False, False, True, False] * 2
    assert traffic.counters["dram__sectors_read.sum"] == 8


@pytest.mark.parametrize("sms", [2, 4])
def test_lines_that_three_and_more_blocks_want_are_fetched_for_others_too(sms: int) -> None:
    """SMs in step load as many lines as they are. Each has DRAM read one of them, and finds the others on their way. Of
    four SMs some are near to each half of L2; two may be near to the same."""
    traffic = served(*[[[(LOAD, line(n)) for n in range(sms)]]] * sms, lines=8)
    own, shared = traffic.cost.dram_sectors > 0, traffic.cost.dram_shared
    assert own.sum() == sms and (shared | own).all()
    assert shared[own].all() if sms == 4 else not shared[own].any()


def test_writes_fetch_nothing_and_hit() -> None:
    traffic = served([[(STORE, line(0)), (LOAD, line(0))]])
    assert traffic.cost.dram_sectors.tolist() == [4, 0]  # written in the end, while a later launch runs
    assert traffic.counters["lts__t_sectors_srcunit_tex_lookup_hit.sum"] == 8
    assert traffic.counters["dram__sectors_write.sum"] == 0  # still in L2 at the end


def test_a_replaced_line_writes_its_dirty_sectors() -> None:
    half: Lanes = [4 * lane if lane < 16 else None for lane in range(32)]
    traffic = served([[(STORE, half), (LOAD, line(1)), (LOAD, line(2)), (LOAD, line(0))]])
    assert traffic.counters["dram__sectors_write.sum"] == 2
    assert traffic.cost.dram_sectors.tolist() == [2, 4, 4, 4]


def test_atomics_fetch_and_write() -> None:
    traffic = served([[(ADD, line(0)), (ADD, line(0)), (LOAD, line(1)), (LOAD, line(2))]])
    assert traffic.cost.dram_sectors.tolist() == [4, 0, 4, 4]
    assert traffic.counters["dram__sectors_write.sum"] == 4


def test_reads_and_writes_by_instruction() -> None:
    rows = {row.index: row for row in served([[(LOAD, line(0)), (LOAD, line(0)), (STORE, line(0))]]).instructions}
    assert (rows[LOAD].l2_sectors, rows[LOAD].l2_hit_sectors, rows[LOAD].dram_sectors) == (8, 4, 4)
    assert (rows[STORE].l2_sectors, rows[STORE].l2_hit_sectors, rows[STORE].dram_sectors) == (4, 4, 0)


def test_what_another_block_of_the_wave_is_fetching_is_in_flight() -> None:
    """Two SMs, one block each, in step: the first fetches line 0 and the second waits for it; both find it later."""
    traffic = served([[(LOAD, line(0)), (LOAD, line(0))]], [[(LOAD, line(0)), (LOAD, line(0))]])
    assert traffic.cost.dram_sectors.tolist() == [4, 0, 0, 0]
    assert traffic.cost.dram_shared.tolist() == [False, False, True, False]


def test_what_an_earlier_wave_fetched_is_there() -> None:
    one_sm = replace(GPU, sm=replace(GPU.sm, count=1))
    blocks = {0: [[(LOAD, line(0))]], 1: [[(LOAD, line(0))]]}
    cost = serve(PROGRAM, launch((2, 1, 1)), warp_trace(5, blocks), one_sm, 0, 1).cost
    assert (cost.dram_sectors.tolist(), cost.dram_shared.tolist()) == ([4, 0], [False, False])
    together = serve(PROGRAM, launch((2, 1, 1)), warp_trace(5, blocks), one_sm, 0, 2).cost
    assert together.dram_shared.tolist() == [False, True]


def test_warm_where_all_fits_dram_is_idle() -> None:
    """Two SMs read line 0 at once, then each writes a line: three lines, which L2 holds."""
    blocks = [[(LOAD, line(0)), (STORE, line(1))]], [[(LOAD, line(0)), (STORE, line(2))]]
    traffic = served(*blocks, lines=3, warm=True)
    assert traffic.cost.dram_sectors.tolist() == [0, 0, 0, 0]
    assert not traffic.cost.dram_shared.any()  # nothing is on its way
    assert traffic.counters["lts__t_sectors_srcunit_tex_lookup_hit.sum"] == 16
    assert traffic.counters["dram__bytes_read.sum"] == traffic.counters["dram__bytes_write.sum"] == 0


def test_warm_finds_what_the_launch_before_used_last() -> None:
    """Two lines of L2. A launch reads lines 0, 1, 2 and leaves 1 and 2: the next finds neither in time, as each is
    replaced by what is read before it. Read as 0, 1, 0 they fit."""
    assert served([[(LOAD, line(n)) for n in (0, 1, 2)]], warm=True).cost.dram_sectors.tolist() == [4, 4, 4]
    assert served([[(LOAD, line(n)) for n in (0, 1, 2, 1)]], warm=True).cost.dram_sectors.tolist() == [4, 0, 4, 0]


def test_warm_writes_back_what_the_launch_before_left_dirty() -> None:
    """A launch writes line 0 and reads 1: both stay. Reading 2 replaces 0 in each launch, the first one's too."""
    block = [[(STORE, line(0)), (LOAD, line(1)), (LOAD, line(2))]]
    assert served(block).counters["dram__sectors_write.sum"] == 4
    kept = [[(LOAD, line(1)), (LOAD, line(2)), (STORE, line(0))]]
    assert served(kept).counters["dram__sectors_write.sum"] == 0
    assert served(kept, warm=True).counters["dram__sectors_write.sum"] == 4


def test_a_launch_finds_in_l2_what_another_left() -> None:
    """The first launch writes line 0 and reads 1. The second finds 0; reading 2 replaces 1, and reading 1 replaces 0,
    which is dirty since the first launch."""
    left = served([[(STORE, line(0)), (LOAD, line(1))]]).l2_after
    assert left is not None
    for _ in range(2):  # what was left is not changed by the launch that begins with it
        traffic = served([[(LOAD, line(0)), (LOAD, line(2)), (LOAD, line(1))]], warm=left)
        assert traffic.cost.dram_sectors.tolist() == [0, 4, 4]
        assert not traffic.cost.dram_shared.any()
        assert traffic.counters["dram__sectors_write.sum"] == 4
    with pytest.raises(GemmsimError, match="another size"):
        served([[(LOAD, line(0))]], lines=3, warm=left)


def test_no_more_lines_are_dirty_than_may_be() -> None:
    """A set of four lines, of which two may be dirty. The third store makes DRAM write the first line, which stays:
    reading it again finds it. Storing to it once more makes DRAM write the second one."""
    stores = [(STORE, line(n)) for n in (0, 1, 2)]
    assert served([stores[:2]], lines=4, dirty=0.5).counters["dram__sectors_write.sum"] == 0
    traffic = served([[*stores, (LOAD, line(0))]], lines=4, dirty=0.5)
    assert traffic.counters["dram__sectors_write.sum"] == 4
    assert traffic.counters["dram__sectors_read.sum"] == 0
    assert served([[*stores, stores[0]]], lines=4, dirty=0.5).counters["dram__sectors_write.sum"] == 8
    assert served([[*stores, stores[0]]], lines=4).counters["dram__sectors_write.sum"] == 0


@pytest.mark.parametrize("load", ["LDG.E.EF", "LDG.E.NA", "LDG.E.LU"])
def test_what_is_read_to_be_evicted_first_is(load: str) -> None:
    """A set of four lines, where lines 0 and 1 are loaded, and 2 and 3 to be evicted first. All fit. Loading 4 replaces
    2, and loading 5 replaces 3, though 0 is older than both."""
    built = program("LDG.E", load)
    gpu = replace(GPU, l2=replace(GPU.l2, size_bytes=4 * 128, ways=4, partitions=1))
    before = [(0, line(0)), (0, line(1)), (1, line(2)), (1, line(3))]

    def found(more: int) -> list[int]:
        """Which lines are there, asked for one at a time."""
        others = [(0, line(4 + n)) for n in range(more)]
        warps = [warp_trace(2, {0: [[*before, *others, (0, line(n))]]}) for n in range(4)]
        last = [serve(built, launch(), trace, gpu, 0, 1).cost.dram_sectors[-1] for trace in warps]
        return [n for n in range(4) if last[n] == 0]

    assert [found(more) for more in range(4)] == [[0, 1, 2, 3], [0, 1, 3], [0, 1], [1]]


def test_they_take_the_room_of_others_up_to_a_share_of_the_set() -> None:
    """Four lines fill a set of four, of which a half is for what is evicted first. The first two of three such lines
    replace 0 and 1, the third one the first of them."""
    gpu = replace(GPU, l2=replace(GPU.l2, size_bytes=4 * 128, ways=4, partitions=1, evict_first_share=0.5))
    warp = [(LOAD, line(n)) for n in range(4)] + [(LOAD_FIRST, line(n)) for n in (4, 5, 6)]
    dram = [serve(PROGRAM, launch(), warp_trace(5, {0: [[*warp, (LOAD, line(n))]]}), gpu, 0, 1).cost.dram_sectors[-1]
            for n in range(7)]  # fmt: skip
    assert [n for n in range(7) if dram[n] == 0] == [2, 3, 5, 6]


def test_reading_an_ordinary_line_so_makes_it_go_first() -> None:
    """Of two lines, 1 is the newer. Read once more to be evicted first, it is replaced by 2; else it is not."""
    for again, found in ((LOAD_FIRST, 4), (LOAD, 0)):
        warp = [(LOAD, line(0)), (LOAD, line(1)), (again, line(1)), (LOAD, line(2)), (LOAD, line(1))]
        assert served([warp]).cost.dram_sectors.tolist() == [4, 4, 0, 4, found]
