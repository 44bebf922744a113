"""The ladder: what its registry says, what the compiler makes of it, and that it computes C on CUDA's semantics."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from kernel_runs import loops
from kernels_plain import MEASURED, PLAIN

from gemmsim.isa.program import Program
from gemmsim.launch.ladder import kernel_info, kernel_infos, kernel_path
from gemmsim.support.errors import GemmsimError

ROOT = Path(__file__).resolve().parents[2]
ORDER = (
    "naive",
    "coalesced",
    "tiled",
    "tiled_transposed",
    "tiled_padded",
    "tiled_swizzled",
    "uncoalesced_bt",
    "warp_shuffle",
    "register_tiled",
    "blocktile_1d",
    "blocktile_2d",
    "register_blocked",
    "rectangular",
    "vectorized",
    "warptiled",
    "double_buffered",
    "async_pipelined",
    "split_k",
    "persistent",
    "fused_epilogue",
    "hgemm_warptiled",
    "wgmma",
    "wgmma_tma",
    "wgmma_specialised",
    "wgmma_persistent",
    "wgmma_cluster",
    "wgmma_fp8",
)


def test_registry_is_complete() -> None:
    infos = kernel_infos()
    assert tuple(name for name in infos if name in ORDER) == ORDER
    for name, info in infos.items():
        assert info.name == name
        assert kernel_path(info) == ROOT / "kernels" / f"{name}.py"
        defaults = {tunable.name: tunable.default for tunable in info.tunables}
        zeros = tuple(info.zeros(3, 4, 5, defaults)) if info.zeros else ()
        usual = (*"ABC", "alpha", "beta", *zeros)
        if info.cuda:
            maps = info.cuda.maps(info.dtypes[0], defaults)
            assert info.arguments == (*usual, *"mnk", *maps) and info.build is None
            assert (ROOT / "kernels" / info.cuda.file).is_file()
        else:
            assert info.arguments in (usual, (*usual, "bias")) and info.build
        assert all(tunable.default in tunable.allowed for tunable in info.tunables)


def test_registry_needs_neither_numba_nor_numpy() -> None:
    code = "import sys, gemmsim.launch.ladder as l; l.kernel_infos(); print({'numba', 'numpy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_unknown_kernel_names_the_nearest() -> None:
    with pytest.raises(GemmsimError, match=r"unknown kernel 'tild' \(did you mean 'tiled'\?\): known are naive"):
        kernel_info("tild")


def test_launch_shapes_cover_c() -> None:
    """M = 33 rows are two blocks of 32, N = 100 columns four; naive has rows in x."""
    assert kernel_info("naive").launch(33, 100, 7, {}).grid == (2, 4, 1)
    assert kernel_info("coalesced").launch(33, 100, 7, {}).grid == (4, 2, 1)
    tiled = kernel_info("tiled").launch(33, 100, 7, {"tile": 16})
    assert (tiled.grid, tiled.block) == ((7, 3, 1), (16, 16, 1))


# numba's own simulator runs the kernels as Python threads: an oracle that shares nothing with the executor. C starts as
# NaN where beta is 0, so that a read of it, or an element left out, shows.
SIMULATE = """
import sys
import numpy as np
from gemmsim.launch.ladder import kernel_info
name, m, n, k, alpha, beta, *tile = sys.argv[1:]
m, n, k, alpha, beta = int(m), int(n), int(k), np.float32(alpha), np.float32(beta)
tunables = {"tile": int(tile[0])} if tile else {}
info = kernel_info(name)
random = np.random.default_rng(1)
a, b, c = (random.random(shape, np.float32) - np.float32(0.5) for shape in ((m, k), (k, n), (m, n)))
if beta == 0:
    c[:] = np.nan
expected = alpha * (a.astype(np.float64) @ b) + (beta * c if beta else 0)
shape = info.launch(m, n, k, tunables)
info.build(**tunables)[shape.grid, shape.block, 0, shape.dynamic_shared_bytes](a, b, c, alpha, beta)
np.testing.assert_allclose(c, expected, rtol=0, atol=1e-6 * k)
"""


@pytest.mark.parametrize(
    "case",
    ["naive 3 5 4 1.5 0", "coalesced 5 3 4 1.5 2", "tiled 9 5 11 1 0 8", "tiled 1 9 1 1.5 2 8"],
)
def test_kernels_compute_c(case: str) -> None:
    pytest.importorskip("numba_cuda")
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", SIMULATE, *case.split()]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.fixture(scope="module")
def plain() -> dict[str, Program]:
    """The plain kernels for sm_90."""
    pytest.importorskip("numba_cuda")
    from numba import cuda

    from gemmsim.compile import ArgType
    from gemmsim.compile.decode import decode_cubin
    from gemmsim.compile.python_kernel import compile_numba

    signature = (ArgType("f32", 2),) * 3
    functions = {function for function, _ in PLAIN.values()}
    compiled = {
        function: decode_cubin(
            compile_numba(cuda.jit(fastmath=True)(function), signature, "sm_90"), arch="sm_90", abi="numba"
        )
        for function in functions
    }
    return {name: compiled[function] for name, (function, _) in PLAIN.items()}


@pytest.mark.parametrize("name", PLAIN)
def test_registers_equal_the_measured_ones(plain: dict[str, Program], name: str) -> None:
    assert plain[name].registers == MEASURED[name][0]


@pytest.mark.parametrize("name", ["tiled16", "tiled32"])
def test_tiled_instructions_equal_the_measured_total(plain: dict[str, Program], name: str) -> None:
    """At n = 1024 every warp runs straight to its one loop, 1024 / tile times through it, and on to EXIT."""
    program, tile = plain[name], PLAIN[name][1]
    (loop,) = loops(program)
    last = max(instruction.index for instruction in program.instructions if instruction.opcode == "EXIT")
    a_warp = (last + 1 - len(loop)) + len(loop) * (1024 // tile)
    assert a_warp * 1024 * 1024 // 32 == MEASURED[name][1]


def test_rows_of_a_are_read_four_words_at_a_time(plain: dict[str, Program]) -> None:
    """Tile 32: 32 words of A are 8 LDS.128, 32 words of B stay 32 LDS, and two words come from global memory."""
    (loop,) = loops(plain["tiled32"])
    counts = Counter(plain["tiled32"].instructions[index].mnemonic for index in loop)
    assert (counts["LDS.128"], counts["LDS"], counts["FFMA"], counts["LDG.E"]) == (8, 32, 32, 2)


def test_plain_k_loop_fits_the_measured_total(plain: dict[str, Program]) -> None:
    """256 times the loop over four K, and what is left of the 36,966 measured a warp fits in the code around it."""
    program = plain["naive32"]
    unrolled, remainder = sorted(loops(program), key=len, reverse=True)
    around = MEASURED["naive32"][1] // 32768 - 256 * len(unrolled)
    last = max(instruction.index for instruction in program.instructions if instruction.opcode == "EXIT")
    assert unrolled.start < around <= last + 1 - len(unrolled) - len(remainder)
