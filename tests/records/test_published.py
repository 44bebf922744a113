"""Published counters and occupancy of real GPUs, and what CUDA C++ of ours with the same parameters does."""

from __future__ import annotations

from collections import Counter

import pytest
from gemmsim_validate.records.case import Case, load_cases
from gemmsim_validate.records.files import FOLDER
from gemmsim_validate.records.replay import launch_of

from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.api import Counted, count
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu import load_gpu

CASES = {case.id: case for case in load_cases(FOLDER / "published")}
NOISE = 0.005


def counted(name: str) -> tuple[Case, Counted]:
    case = CASES[name]
    return case, count(launch_of(case))


def test_rtx4090_2d_block_tile() -> None:
    """64 x 64 x 8, 8 x 8 a thread at 4096: 4096 blocks of 2 warps, 512 tiles each.

    NVRTC 13 reads A by 16 LDS.128 and 8 LDS a tile and B by 16 LDS.128, as the published count of 40 requests a warp
    and tile demands; NVRTC 12.8 makes 64 LDS and 16 LDS.128 of the same source. Wavefronts a warp and tile: 16 x 4,
    8 x 4 and 16 x 8.
    """
    case, found = counted("kapilsh-rtx4090-2d-f32-4096x4096x4096")
    loads = Counter(i.modifiers for i in found.program.instructions if i.opcode == "LDS")
    assert loads == {("128",): 32, (): 8}
    ours, tiles = found.traffic.counters, 4096 * 2 * 512
    assert ours["smsp__inst_executed_op_shared_ld.sum"] == 40 * tiles == 167_772_160
    assert ours["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == (64 + 32 + 128) * tiles
    assert ours["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 503_316_480
    assert ours["smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"] == 4.0
    for name, measured in case.counters.items():
        assert ours[name] == pytest.approx(measured, rel=2e-5), name


def test_a100_2d_block_tile() -> None:
    case, found = counted("swayam-a100-2d-profiled-f32-4096x4096x4096")
    ours = found.traffic.counters
    exact = [n for n in case.counters if "_op_st" not in n or "global" in n]  # shared stores hold arbitration
    assert {n: ours[n] for n in exact} == pytest.approx({n: case.counters[n] for n in exact}, rel=NOISE)


@pytest.mark.parametrize(("tile", "occupancy", "blocks"), [(16, 100.0, 6), (32, 200 / 3, 1)])
def test_rtx5070ti_occupancy(tile: int, occupancy: float, blocks: int) -> None:
    """Registers, carve-out and each limit as Nsight Compute printed them for 16 x 16 and 32 x 32 threads."""
    case = CASES[f"boopdotpng-rtx5070ti-tiled{tile}-f32-4096x4096x4096"]
    request = launch_of(case)
    program = compile_kernel(request.kernel, request.gpu.arch, default_cache())
    found = theoretical_occupancy(
        program.registers, program.static_shared_bytes, tile * tile, request.gpu, grid_blocks=request.launch.blocks
    )
    ours = {
        "launch__registers_per_thread": program.registers,
        "launch__shared_mem_per_block_static": program.static_shared_bytes,
        "launch__shared_mem_config_size": found.carveout_bytes,
        "launch__occupancy_limit_blocks": found.limit_blocks,
        "launch__occupancy_limit_registers": found.limit_registers,
        "launch__occupancy_limit_shared_mem": found.limit_shared_mem,
        "launch__occupancy_limit_warps": found.limit_warps,
    }
    assert ours == {name: case.counters[name] for name in ours}
    assert found.theoretical_pct == pytest.approx(occupancy)
    assert found.blocks_per_sm == blocks


# A SM of 48 warps (1536 threads) and 65536 registers, given out 256 at a time: registers a thread -> blocks, percent.
@pytest.mark.parametrize(
    ("threads", "registers", "blocks", "percent"),
    [
        (1024, 32, 1, 200 / 3),  # the second block would need 2048 threads
        (768, 32, 2, 100.0),
        (512, 40, 3, 100.0),  # 512 x 40 = 20480 registers, three fit
        (512, 48, 2, 200 / 3),  # 24576: two
        (256, 40, 6, 100.0),
        (256, 64, 4, 200 / 3),  # 16384: four
        (256, 128, 2, 100 / 3),
        (128, 255, 2, 50 / 3),  # 256 a thread: 32768
    ],
)
@pytest.mark.parametrize("gpu", ["rtx4090", "rtxa6000", "rtx3050", "rtx5070ti"])
def test_occupancy_of_1536_threads_by_registers(
    gpu: str, threads: int, registers: int, blocks: int, percent: float
) -> None:
    found = theoretical_occupancy(registers, 0, threads, load_gpu(gpu))
    assert (found.blocks_per_sm, found.theoretical_pct) == (blocks, pytest.approx(percent))


# The largest carve-out is 100 KiB, and each block takes 1 KiB of the driver's: static KiB -> blocks of 128 threads.
@pytest.mark.parametrize(
    ("shared_kib", "blocks", "percent"),
    [(7, 12, 100.0), (8, 11, 1100 / 12), (15, 6, 50.0), (24, 4, 100 / 3), (48, 2, 50 / 3)],
)
@pytest.mark.parametrize("gpu", ["rtx4090", "rtxa6000"])
def test_occupancy_of_1536_threads_by_shared_memory(gpu: str, shared_kib: int, blocks: int, percent: float) -> None:
    found = theoretical_occupancy(32, shared_kib * 1024, 128, load_gpu(gpu))
    assert (found.blocks_per_sm, found.theoretical_pct) == (blocks, pytest.approx(percent))
