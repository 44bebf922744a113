"""serve: counters of whole launches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_gemm import GEMM, GPU, LOAD_A, gemm
from trace_builder import launch, program, warp_trace

from gemmsim.memory.serve import serve
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance


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
