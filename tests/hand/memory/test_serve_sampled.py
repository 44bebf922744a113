"""serve: counters of launches of which some blocks were executed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_gemm import GEMM, GPU, SAMPLE, A, C, gemm, gemm_trace
from trace_builder import Accesses, launch, program, warp_trace

from gemmsim.memory.grid import footprint
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.sector_assignment import Tiles, round_to_sectors, sectors_new_to_block
from gemmsim.memory.requests.cache_operations import READ
from gemmsim.memory.requests.coalescer import coalesce
from gemmsim.memory.serve import serve
from gemmsim.support.provenance import Provenance
from gemmsim.trace.types import Argument, Launch


class TestSampled:
    """n = 128: 4 x 32 blocks. One is executed, and what the others do is known from it."""

    def test_counted_exactly(self) -> None:
        whole, sampled = gemm(128), gemm(128, SAMPLE)
        exact = [name for name, how in whole.provenance.items() if how == Provenance.EXACT]
        assert {n: sampled.counters[n] for n in exact} == {n: whole.counters[n] for n in exact}

    def test_each_sector_is_read_once_where_all_fit(self) -> None:
        sampled = gemm(128, SAMPLE)
        assert sampled.counters["dram__sectors_read.sum"] == gemm(128).counters["dram__sectors_read.sum"] == 4096
        assert sampled.counters["dram__sectors_write.sum"] == 0
        assert any("each wave" in note for note in sampled.notes)

    @pytest.mark.parametrize("sms", [6, 10])
    def test_near_the_whole_where_l2_is_too_small(self, sms: int) -> None:
        """B has 64 KB, L2 48 and L1 4: each wave reads it anew. An SM has one block, so that waves are in step."""
        ran = [gemm(128, only, 48 << 10, sms, l1_bytes=4096, resident=1).counters for only in (None, SAMPLE)]
        for name, off in (("dram__sectors_read.sum", 0.02), ("l1tex__m_xbar2l1tex_read_sectors.sum", 0.01)):
            assert ran[1][name] == pytest.approx(ran[0][name], rel=off)
        assert ran[0]["dram__sectors_read.sum"] > 4096

    @pytest.mark.parametrize("most", [3000, 300])
    def test_a_sample_of_sectors_counts_as_many_as_there_are(self, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
        """An L2 of 8 KB loses nearly all of C's 2048 sectors. A block stores 16 and loads 64 and 512: of each, every
        m-th stands for m, but of fewer than m the first stands for all. Of A the m-th of each row need not be it."""
        names = ("dram__sectors_write.sum", "dram__sectors_read.sum")
        every = [gemm(128, SAMPLE, 8 << 10, 3, l1_bytes=4096).counters[name] for name in names]
        monkeypatch.setattr(footprint, "_MAX_VISITS", most)
        some = [gemm(128, SAMPLE, 8 << 10, 3, l1_bytes=4096).counters[name] for name in names]
        assert 1900 < every[0] <= 2048
        assert some[0] == pytest.approx(every[0], rel=0.05) and some[1] == pytest.approx(every[1], rel=0.05)

    def test_what_both_halves_of_l2_read_is_there_twice(self) -> None:
        """B has 64 KB: an L2 of 96 keeps it from wave to wave, but not where it has two partitions: then each
        of 13 waves of 10 blocks, in step, reads its 2048 sectors then, and A's 2048 are read once in any case."""
        name = "dram__sectors_read.sum"
        one, two = (
            [
                gemm(128, only, 96 << 10, 10, l1_bytes=4096, resident=1, partitions=p).counters[name]
                for only in (None, SAMPLE)
            ]
            for p in (1, 2)
        )
        assert one[0] < 0.4 * two[0]
        assert one[1] == 2048 + 2048
        assert two[0] == pytest.approx(two[1], rel=0.01)
        assert two[1] == pytest.approx(13 * 2048 + 2048, rel=0.02)

    def test_what_a_wave_leaves_in_l1_for_the_next(self) -> None:
        """One SM, a row of the grid at a time: it keeps all of B, which the first row brings and 31 find."""
        whole, sampled = (gemm(128, only, sms=1, l1_bytes=1 << 18, resident=4).counters for only in (None, SAMPLE))
        name = "l1tex__m_xbar2l1tex_read_sectors.sum"
        a, b = 128 * 16, 128 * 16  # sectors
        assert whole[name] == a + b
        assert sampled[name] == a  # the sample stands for waves that come later than the first

    def test_record_costs_follow_the_estimate(self) -> None:
        sampled = gemm(128, SAMPLE, l1_bytes=4096)
        reads = sum(row.l2_sectors for row in sampled.instructions if row.op == "ld")
        share = sampled.counters["dram__sectors_read.sum"] / reads
        executed = sampled.cost
        assert (executed.dram_sectors <= 2 * executed.l2_sectors).all()  # two sectors are fetched at once
        stored = 4 * 4  # by four warps; DRAM writes it in the end
        loads = executed.l2_sectors.sum() - stored
        assert executed.dram_sectors.sum() - stored == pytest.approx(share * loads, rel=0.05)

    def test_where_one_wave_has_all_blocks_they_wait_together(self) -> None:
        """128 blocks: on 132 SMs loads that miss L1 wait for DRAM, their own fetch or another block's. On 3 SMs
        most of what a later wave reads is in L2 from an earlier one, and only the rest is waited for."""
        stores = 4  # of four warps; nothing waits for those
        one_wave, many = (gemm(128, SAMPLE, sms=sms, l1_bytes=4096).cost for sms in (132, 3))
        loads = (one_wave.l2_sectors > 0).sum() - stores
        waiting = (one_wave.dram_shared | (one_wave.dram_sectors > 0)).sum()
        assert 0.75 * loads < waiting < loads  # some find the second sector of 64 bytes that the block has asked for
        loads = (many.l2_sectors > 0).sum() - stores
        assert 0 < (many.dram_shared | (many.dram_sectors > 0)).sum() < 0.5 * loads

    def test_warm_reads_nothing_where_all_fits(self) -> None:
        """A, B and C are 192 KB, L2 1 MB: the launch before has left them there."""
        for only in (None, SAMPLE):
            warm = gemm(128, only, warm=True)
            assert warm.counters["dram__sectors_read.sum"] == 0
            assert not warm.cost.dram_sectors.any() and not warm.cost.dram_shared.any()
            name = "l1tex__m_xbar2l1tex_read_sectors.sum"
            assert warm.counters[name] == gemm(128, only).counters[name]  # L1 begins empty in both

    @pytest.mark.parametrize("l2_bytes", [48 << 10, 160 << 10])
    def test_warm_near_the_whole_where_l2_is_too_small(self, l2_bytes: int) -> None:
        """What a launch finds of what the last one left, by waves and by replay: within 15 % of what a cold one
        reads. Of 48 KB nothing is left in time; of 160 KB all of B is, and A is read anew."""
        name = "dram__sectors_read.sum"
        whole, sampled = (gemm(128, only, l2_bytes, warm=True, l1_bytes=4096).counters[name] for only in (None, SAMPLE))
        assert sampled == pytest.approx(whole, abs=0.15 * gemm(128, None, l2_bytes, l1_bytes=4096).counters[name])

    def test_a_bound_where_addresses_lie_too_far_apart(self) -> None:
        """The blocks of a row are 2^50 bytes apart: DRAM reads the arrays, 192 KB, unless a launch before has left
        them in L2, and the report says that this is a bound."""
        trace = gemm_trace(128, SAMPLE)
        assert trace.relation is not None
        far = np.where(np.arange(128) % 4 == 0, 0, 1 << 50)
        far = replace(trace, relation=replace(trace.relation, offset_bytes=trace.relation.offset_bytes + far))
        arguments = tuple(Argument("f32", (128, 128), None) for _ in range(3))
        bounds = (
            (192, False, 1, 6144),
            (191, True, 1, 6144),
            (192, True, 1, 0),
            (383, True, 2, 6144),
            (384, True, 2, 0),
        )
        for l2_kib, warm, partitions, read in bounds:  # what blocks of both halves share is in both partitions
            gpu = replace(GPU, l2=replace(GPU.l2, size_bytes=l2_kib << 10, partitions=partitions))
            traffic = serve(GEMM, Launch((4, 32, 1), (32, 4, 1), arguments), far, gpu, 64 << 10, 2, warm)
            assert traffic.counters["dram__sectors_read.sum"] == read
            assert any("too few" in note for note in traffic.notes)


def test_rounding_keeps_sums_and_whole_numbers() -> None:
    pc = np.array([7, 3, 7, 3, 7, 7], np.int32)
    amount = np.array([0.5, 4.0, 0.5, 0.0, 0.75, 1.25])
    assert round_to_sectors(amount, pc).tolist() == [0, 4, 1, 0, 0, 2]
    assert round_to_sectors(np.zeros(0), np.zeros(0, np.int32)).tolist() == []


def loads_by(pc: list[int], base_sector: list[int], shape: list[int], start: list[int]) -> L1Requests:
    """Requests of blocks of two warps."""
    count = len(pc)
    return L1Requests(
        record=np.arange(count),
        base_sector=np.array(base_sector, np.int64),
        shape=np.array(shape, np.int32),
        operation=np.full(count, READ, np.uint8),
        pc=np.array(pc, np.int32),
        last_use=np.zeros(count, np.bool_),
        evict_first=np.zeros(count, np.bool_),
        mover=np.zeros(count, np.int32),
        start=np.array(start),
        warps_per_block=2,
    )


def test_a_tile_comes_from_dram_as_a_whole_or_not_at_all() -> None:
    """Two blocks of two warps; every warp loads a tile's rows by instruction 5 four times, and by 6 once."""
    requests = loads_by([5, 5, 6, 5, 5] * 4, [0] * 20, [0] * 20, [0, 5, 10, 15, 20])
    share = np.zeros(7)
    share[5], share[6] = 0.25, 1.0
    found = Tiles(requests).assign(np.full(20, 4), share[requests.pc]).reshape(2, 2, 5)
    assert (found[:, 0] == found[:, 1]).all()  # the warps of a block alike
    assert found[0, 0].tolist() == [0, 4, 4, 0, 0]  # a quarter of four tiles: one
    assert found[1, 0].tolist() == [0, 4, 4, 0, 0]
    none = loads_by([], [], [], [0, 0, 0])
    assert Tiles(none).assign(np.zeros(0, np.int64), np.zeros(0)).tolist() == []


def test_what_an_access_brings_where_64_bytes_are_fetched() -> None:
    """Two warps of a block go along rows of sectors, the second beginning at an odd one; then a whole line."""
    lane = np.arange(32)
    patterns = coalesce(np.stack([4 * (lane % 8), 4 * lane]), np.ones((2, 32), bool), np.full(2, 4))
    requests = loads_by([0] * 8, [0, 1, 2, 8, 101, 102, 103, 104], [0, 0, 0, 1, 0, 0, 0, 0], [0, 4, 8])
    asked = np.array([1, 1, 1, 4, 1, 1, 1, 1])
    # pairs: 0-1, 2-3, the line's two; 100-101, 102-103, 104-105
    assert sectors_new_to_block(asked, requests, patterns, 2).tolist() == [2, 0, 2, 4, 2, 2, 0, 2]
    assert sectors_new_to_block(asked, requests, patterns, 1).tolist() == asked.tolist()


def test_dram_writes_each_stored_sector_once() -> None:
    """Eight warps store 4 bytes of each of 32 lines, side by side: 8 x 32 sectors go to L2, 32 in the end to DRAM.

    A ninth stores four sectors at once. A launch on the same data afterwards finds all of them in L2.
    """
    apart = [[(0, [C + 128 * line + 4 * warp for line in range(32)])] for warp in range(8)]
    together = [[(1, [A + 4 * lane for lane in range(32)])]]
    code, trace = program("STG.E", "STG.E"), warp_trace(2, {0: apart + together})
    cold = serve(code, launch(threads=288), trace, GPU, 0, 1)
    written = np.bincount(cold.cost.dram_sectors.astype(int)[:8], minlength=5)
    assert cold.cost.l2_sectors.tolist() == [32] * 8 + [4]
    assert int(written @ np.arange(5)) == 32 and cold.cost.dram_sectors[8] == 4
    assert cold.counters["dram__sectors_write.sum"] == 0
    assert serve(code, launch(threads=288), trace, GPU, 0, 1, begins=True).cost.dram_sectors.sum() == 0


def test_what_dram_reads_beside_a_sector_is_a_miss_of_whoever_asks_for_it() -> None:
    """DRAM reads 64 bytes for the first load, of sector 0; the second load, of sector 1, finds them under way. As on an
    H200, both miss L2, and DRAM reads two sectors."""
    block: list[Accesses] = [[(0, [0] * 32), (1, [32] * 32)]]
    traffic = serve(program("LDG.E", "LDG.E"), launch(), warp_trace(2, {0: block}), GPU, 0, 1)
    assert traffic.counters["dram__sectors_read.sum"] == 2
    assert traffic.counters["lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum"] == 2
    assert [row.dram_sectors for row in traffic.instructions] == [1, 1]


def test_what_nobody_asks_for_is_read_all_the_same() -> None:
    block: list[Accesses] = [[(0, [0] * 32)]]
    traffic = serve(program("LDG.E"), launch(), warp_trace(1, {0: block}), GPU, 0, 1)
    assert traffic.counters["dram__sectors_read.sum"] == 2
    assert traffic.counters["lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum"] == 1
