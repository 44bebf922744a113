"""A kernel that reads its tiles through generic pointers: the same counters as with LDS, but for instructions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from gemmsim.api import Counted, count, time
from gemmsim.compile import CudaKernel
from gemmsim.gpu.load import load_gpu
from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.trace.types import Launch

SOURCE = Path(__file__).parents[1] / "sources" / "generic_tile.cu"
N = 64
# (N/16)^2 blocks of 8 warps, each of which makes N steps
WARP_STEPS = (N // 16) ** 2 * 8 * N


def launched(gpu: str, never: int, *options: str) -> LaunchSpec:
    arguments = parse_arguments([f"f32[{N},{N}]"] * 3 + [f"i32={N}", f"i32={never}"])
    kernel = CudaKernel(SOURCE.read_text(), SOURCE, "product", options)
    launch = Launch((N // 16, N // 16, 1), (16, 16, 1), arguments.args)
    return LaunchSpec(kernel, launch, load_gpu(gpu), Labels("product"), settings=Settings(full=True))


@cache
def counted(gpu: str, *options: str) -> Counted:
    return count(launched(gpu, 0, *options))


@pytest.mark.parametrize("gpu", ["h200", "rtx4090"])
def test_generic_loads_of_shared_memory_count_as_shared_requests(gpu: str) -> None:
    generic, plain = counted(gpu, "-DGENERIC").traffic.counters, counted(gpu).traffic.counters
    assert generic["smsp__inst_executed_op_generic_ld.sum"] == 2 * WARP_STEPS
    assert generic["smsp__inst_executed_op_shared_ld.sum"] == 0
    assert "smsp__inst_executed_op_generic_ld.sum" not in plain  # which a program without any lacks
    for name in ("t_requests_pipe_lsu_mem_global_op_ld", "t_sectors_pipe_lsu_mem_global_op_ld"):
        assert generic[f"l1tex__{name}.sum"] == plain[f"l1tex__{name}.sum"] > 0
    # A warp has two rows of 16 threads. A load of the left tile reads two words, 16 banks apart, and one of the right
    # tile 16 words in a row: each takes one wavefront.
    waves = generic["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"]
    assert waves == 2 * WARP_STEPS
    assert generic["dram__sectors_read.sum"] == plain["dram__sectors_read.sum"]


def test_the_time_is_near_that_of_the_kernel_with_shared_loads() -> None:
    spec = launched("h200", 0, "-DGENERIC")
    assert time(counted("h200", "-DGENERIC"), spec).cycles == pytest.approx(
        time(counted("h200"), launched("h200", 0)).cycles, rel=0.25
    )
