"""serve: counters of whole launches, and of launches of which some blocks were executed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from trace_builder import Accesses, launch, program, warp_trace

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.grid import footprint
from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.sector_assignment import Tiles, round_to_sectors, sectors_new_to_block
from gemmsim.memory.requests.cache_operations import READ
from gemmsim.memory.requests.coalescer import coalesce
from gemmsim.memory.serve import serve
from gemmsim.memory.types import Traffic
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance
from gemmsim.trace.types import Argument, Launch, Relation, WarpTrace

GPU = load_gpu("h200")
GPU = replace(GPU, l1=replace(GPU.l1, spare_lines=0, lost_lines=(0, 0, 1)))  # some L1s here have 32 lines
LOAD_A, LOAD_B, STORE_C = range(3)
GEMM = program("LDG.E", "LDG.E", "STG.E")
A, B, C = 1 << 20, 2 << 20, 3 << 20
SAMPLE = (1, 1)  # the block that is executed, as (x, y)


def gemm_block(n: int, x: int, y: int) -> list[Accesses]:
    """A block of 32 columns and 4 rows of C = A B, matrices n wide: a warp a row, A broadcast, B packed."""
    warps = []
    for row in range(4 * y, 4 * y + 4):
        columns = [32 * x + lane for lane in range(32)]
        accesses = []
        for k in range(n):
            accesses.append((LOAD_A, [A + 4 * (row * n + k)] * 32))
            accesses.append((LOAD_B, [B + 4 * (k * n + column) for column in columns]))
        accesses.append((STORE_C, [C + 4 * (row * n + column) for column in columns]))
        warps.append(accesses)
    return warps


@cache
def gemm_trace(n: int, only: tuple[int, int] | None) -> WarpTrace:
    """All blocks, or only one, with what is known of the others from it."""
    gx, gy = n // 32, n // 4
    if only is None:
        return warp_trace(3, {x + gx * y: gemm_block(n, x, y) for y in range(gy) for x in range(gx)})
    trace = warp_trace(3, {only[0] + gx * only[1]: gemm_block(n, *only)}, [float(gx * gy)])
    right, down = np.arange(gx * gy) % gx - only[0], np.arange(gx * gy) // gx - only[1]
    rows, columns = 4 * n * 4 * down, 4 * 32 * right  # bytes
    moves = np.stack([0 * rows, rows, columns, rows + columns])  # for A, B and C
    threads = gx * gy * trace.threads_executed[0]
    relation = Relation(np.zeros(gx * gy, np.int64), trace.record_pc + 1, moves, threads, False)
    return replace(trace, relation=relation)


def gemm(
    n: int,
    only: tuple[int, int] | None = None,
    l2_bytes: int = 1 << 20,
    sms: int = 3,
    warm: bool = False,
    l1_bytes: int = 64 << 10,
    resident: int = 2,
    partitions: int = 1,
) -> Traffic:
    """An n x n GEMM on a small GPU, all blocks or only the one at (x, y)."""
    grid, trace = (n // 32, n // 4, 1), gemm_trace(n, only)
    gpu = replace(GPU, sm=replace(GPU.sm, count=sms), l2=replace(GPU.l2, size_bytes=l2_bytes, partitions=partitions))
    arguments = tuple(Argument("f32", (n, n), None) for _ in range(3))
    return serve(GEMM, Launch(grid, (32, 4, 1), arguments), trace, gpu, l1_bytes, resident, warm)


class TestWhole:
    def test_counters_of_a_gemm(self) -> None:
        """n = 64: 32 blocks of 4 warps, 64 steps. A request touches 1 sector of A, 4 of B; DRAM reads both once."""
        counters = gemm(64).counters
        assert counters["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 32 * 4 * 64 * 2
        assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 32 * 4 * 64 * 5
        assert counters["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"] == 2.5
        assert counters["smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"] == (4 + 128) / 5
        assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 64 * 64 * 4 / 32
        assert counters["dram__sectors_read.sum"] == 2 * 64 * 64 * 4 / 32
        assert counters["smsp__inst_executed.sum"] == 32 * 4 * (64 * 2 + 1)
        assert counters["smsp__thread_inst_executed_pred_on.sum"] == 32 * 32 * 4 * (64 * 2 + 1)
        assert counters["lts__t_requests_srcunit_tex.sum"] >= 32 * 4  # the stores, a line each

    def test_provenance(self) -> None:
        provenance = gemm(32).provenance
        assert provenance["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == Provenance.EXACT
        assert provenance["l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"] == Provenance.MODELLED
        assert provenance["dram__sectors_read.sum"] == Provenance.MODELLED

    def test_shared_memory(self) -> None:
        """A tile's A row by a broadcast LDS.128, B by LDS, one STS: 2 + 1 + 1 wavefronts, 16 + 128 + 128 bytes."""
        built = program("LDS.128", "LDS", "STS")
        packed = [4 * lane for lane in range(32)]
        trace = warp_trace(3, {0: [[(0, [0] * 32), (1, packed), (2, packed)]]})
        traffic = serve(built, launch(), trace, GPU, 65536, 1)
        counters = traffic.counters
        assert counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 3
        assert counters["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] == 4
        assert counters["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 0
        assert counters["smsp__sass_average_data_bytes_per_wavefront_mem_shared.ratio"] == (16 + 128 + 128) / 4
        assert traffic.cost.tag_cycles.tolist() == [0, 0, 0]
        assert traffic.cost.wavefronts.tolist() == [2, 1, 1]
        assert {row.sectors for row in traffic.instructions} == {0}

    def test_shuffles_and_matrix_loads_are_counted_apart(self) -> None:
        """A shuffle passes the data stage once, as shared memory; LDSM is no shared load by its name (H200)."""
        built = program("LDSM.16.M88.4", "LDS", "SHFL.BFLY")
        rows = [16 * lane for lane in range(32)]
        trace = warp_trace(3, {0: [[(0, rows), (1, [4 * lane for lane in range(32)])]]})
        trace = replace(trace, executed=np.array([[1, 1, 5]]))
        counters = serve(built, launch(), trace, GPU, 65536, 1).counters
        assert counters["smsp__inst_executed_op_ldsm.sum"] == 1
        assert counters["smsp__inst_executed_op_shared_ld.sum"] == 1
        assert counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 4 + 1
        assert counters["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] == 4 + 1 + 5
        assert counters["l1tex__data_pipe_lsu_wavefronts.sum"] == 4 + 1 + 5

    def test_a100_data_bytes_a_wavefront(self) -> None:
        """SwayamInSync/SGEMM-Worklog, kernel 3 on an A100: 8 broadcast LDS.128, 32 LDS and 2 STS a tile; 70 %."""
        built = program("LDS.128", "LDS", "STS")
        packed = [4 * lane for lane in range(32)]
        trace = warp_trace(3, {0: [[(0, [0] * 32)] * 8 + [(1, packed)] * 32 + [(2, packed)] * 2]})
        counters = serve(built, launch(), trace, GPU, 65536, 1).counters
        assert counters["smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"] == pytest.approx(70)

    def test_an_instruction_without_active_lanes_makes_no_request(self) -> None:
        trace = warp_trace(3, {0: [[(LOAD_A, [None] * 32)]]})
        counters = serve(GEMM, launch(), trace, GPU, 65536, 1).counters
        assert counters["smsp__inst_executed_op_global_ld.sum"] == 1
        assert counters["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 0

    def test_copies_are_read_like_loads_and_then_written(self) -> None:
        """Source stride 128 bytes, 16 bytes a lane: 32 lines, 8 passes of 4 (measured 32 on an RTX 5090). An H200 takes
        one and a half more, as for one line. Both requests miss, and ask L2 for 32 lines and 4, one a cycle."""
        trace = warp_trace(1, {0: [[(0, [128 * lane for lane in range(32)]), (0, [16 * lane for lane in range(32)])]]})
        cost = serve(program("LDGSTS.E.128"), launch(), trace, GPU, 65536, 1).cost
        assert cost.tag_cycles.tolist() == [32, 4]
        assert cost.wavefronts.tolist() == [32 + 1, 4 + 1]

    def test_a_load_holds_the_tag_stage_until_it_has_asked_l2_for_its_lines(self) -> None:
        """By hand: 32 rows are 32 lines. Missing, they take a cycle each; where they hit, and where they are stored,
        four tag banks take four a cycle; where L2 takes two a cycle, 16 cycles."""
        rows = [128 * lane for lane in range(32)]
        twice = warp_trace(1, {0: [[(0, rows), (0, rows)]]})
        assert serve(program("LDG.E"), launch(), twice, GPU, 65536, 1).cost.tag_cycles.tolist() == [32, 8]
        assert serve(program("STG.E"), launch(), twice, GPU, 65536, 1).cost.tag_cycles.tolist() == [8, 8]
        faster = replace(GPU, l1=replace(GPU.l1, miss_lines_per_cycle=2))
        assert serve(program("LDG.E"), launch(), twice, faster, 65536, 1).cost.tag_cycles.tolist() == [16, 8]

    def test_bad_input(self) -> None:
        trace = warp_trace(3, {0: [[(LOAD_A, [0] * 32)]]})
        with pytest.raises(GemmsimError, match=r"l1\.line and l1\.sector must be 128 and 32"):
            serve(GEMM, launch(), trace, replace(GPU, l1=replace(GPU.l1, line_bytes=64)), 65536, 1)
        with pytest.raises(GemmsimError, match="no block fits"):
            serve(GEMM, launch(), trace, GPU, 65536, 0)


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
