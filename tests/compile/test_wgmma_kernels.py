"""The rungs with wgmma compute C = alpha A B + beta C on the simulator, at any size, and do it with what they teach."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from gemmsim_validate.records.case import load_cases
from gemmsim_validate.records.files import FOLDER
from gemmsim_validate.records.replay import launch_of
from kernel_runs import compiled, defaults, run

from gemmsim.analysis.results import check_results
from gemmsim.api import count
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import Program
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.ladder import kernel_info
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.blocks import sampled

pytest.importorskip("numba_cuda")

FEW = {"blocks": 4}
RUNGS = {"wgmma": {}, "wgmma_tma": {}, "wgmma_specialised": {}, "wgmma_persistent": FEW, "wgmma_cluster": FEW}
SIZES = (
    (1, 1, 1),
    (128, 256, 64),  # whole tiles
    (200, 264, 136),  # tiles reach beyond every edge, and rows begin at multiples of 16 bytes: TMA
    (130, 77, 99),  # rows begin anywhere
    (65, 300, 72),  # rows of B and C do not begin at multiples of 16 bytes, those of A do
)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", RUNGS)
def test_any_size(name: str, sizes: tuple[int, int, int]) -> None:
    run(name, "sm_90", sizes, dtype="bf16", **RUNGS[name])


@pytest.mark.parametrize("name", RUNGS)
def test_halves_alpha_and_beta(name: str) -> None:
    run(name, "sm_90", (130, 264, 72), 1.5, -0.5, "f16", **RUNGS[name])


@pytest.mark.parametrize("sizes", [(1, 1, 1), (200, 300, 272), (130, 77, 99)])
def test_fp8(sizes: tuple[int, int, int]) -> None:
    run("wgmma_fp8", "sm_90", sizes, 1.5, 0.5, "e4m3", **FEW)


@pytest.mark.parametrize(
    "tunables",
    [
        {"tile_n": 64, "stages": 6, "slots": 1},
        {"tile_n": 128, "stages": 2, "slots": 4, "group": 1},
        {"stages": 3, "slots": 4, "group": 2},
    ],
)
def test_other_tunables(tunables: dict[str, int]) -> None:
    """Three tiles of rows; four blocks take several tiles, so that stages and slots are used again."""
    run("wgmma_persistent", "sm_90", (300, 520, 330), dtype="f16", blocks=4, **tunables)


def test_narrow_tiles_and_deep_rings() -> None:
    run("wgmma", "sm_90", (130, 136, 136), dtype="f16", tile_n=64)
    run("wgmma_tma", "sm_90", (130, 136, 520), dtype="f16", tile_n=64, stages=6)
    run("wgmma_specialised", "sm_90", (130, 136, 520), dtype="f16", tile_n=128, stages=2)


def opcodes(program: Program) -> Counter[str]:
    return Counter(one.mnemonic.split(".")[0] for one in program.instructions)


def test_what_they_are_made_of() -> None:
    """Each step shows in the machine code; none of it spills the sums to local memory."""
    programs = {name: compiled(name, "sm_90", defaults(name), "bf16") for name in RUNGS}
    found = {name: opcodes(program) for name, program in programs.items()}
    for name, counts in found.items():
        assert counts["HGMMA"] and not counts["HMMA"], name
        assert bool(counts["UTMALDG"]) is (name != "wgmma")
        assert bool(counts["USETMAXREG"]) is (name not in ("wgmma", "wgmma_tma"))
        assert bool(counts["UTMASTG"]) is (name in ("wgmma_persistent", "wgmma_cluster"))
        assert bool(counts["UCGABAR_ARV"]) is (name == "wgmma_cluster")
    shapes = {one.mnemonic for one in programs["wgmma_specialised"].instructions if one.opcode == "HGMMA"}
    assert shapes == {"HGMMA.64x256x16.F32.BF16"}
    assert opcodes(compiled("wgmma_fp8", "sm_90", defaults("wgmma_fp8"), "e4m3"))["QGMMA"]
    assert programs["wgmma_cluster"].cluster == (2, 1, 1)


def test_the_grid_of_clusters_is_whole() -> None:
    """Rows of 3 tiles are 2 clusters; of 66 clusters no more than the tiles are launched."""
    launch = kernel_info("wgmma_cluster").launch
    assert launch(300, 256, 64, defaults("wgmma_cluster")).grid == (4, 1, 1)
    assert launch(8192, 8192, 64, defaults("wgmma_cluster")).grid == (132, 1, 1)
    assert launch(8192, 8192, 64, defaults("wgmma_cluster") | {"blocks": 108, "cluster": 4}).grid == (108, 1, 1)


def test_what_cannot_be_launched_is_refused() -> None:
    case = LadderCase("wgmma_specialised", 256, 256, 256, tunables={"stages": 6})
    with pytest.raises(GemmsimError, match="295008 bytes of shared memory, a block has 232448"):
        ladder_launch(case, load_gpu("h200"))
    case = LadderCase("wgmma_cluster", 256, 256, 256, tunables={"tile_n": 64})
    with pytest.raises(GemmsimError, match="a tile of 64 columns has no 2 boxes for 2 blocks to load"):
        ladder_launch(case, load_gpu("h200"))
    with pytest.raises(GemmsimError, match="kernel 'wgmma' is for sm_90: a100-80gb is sm_80"):
        ladder_launch(LadderCase("wgmma", 256, 256, 256), load_gpu("a100"))


def test_records_launch_what_the_ladder_launches() -> None:
    """What an H200 ran has the same grids, shared memory, arguments and tensor maps."""
    cases = [case for case in load_cases(FOLDER / "h200_wgmma") if case.rung]
    assert {case.name for case in cases} == {*RUNGS, "wgmma_fp8"}
    for case in cases:
        ladder = ladder_launch(
            LadderCase(case.name, case.m, case.n, case.k, case.dtype, case.tunables), load_gpu("h200")
        )
        recorded = launch_of(case).launch
        assert recorded.parameters == ladder.launch.parameters, case.id
        assert (recorded.grid, recorded.block) == (ladder.launch.grid, ladder.launch.block), case.id
        assert recorded.dynamic_shared_bytes == ladder.launch.dynamic_shared_bytes, case.id
        assert [(one.dtype, one.shape) for one in recorded.args] == [
            (one.dtype, one.shape) for one in ladder.launch.args
        ]
        assert case.data["correctness"]["status"] == "correct"


def test_products_of_a_large_sample_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of clusters of two or three tiles a block, those of the first come to their second tile with the limit.

    What was stored until then is right, and the trace is that of an execution with all products.
    """
    case = LadderCase("wgmma_cluster", 4096, 2048, 64, "bf16", {"blocks": 108})
    spec = ladder_launch(case, load_gpu("h200"))
    spec = replace(spec, settings=replace(spec.settings, full_below=0))
    whole = count(spec)
    monkeypatch.setattr(sampled, "MOST_COLUMNS", 2 * 2 * 8 * 4 * 256)  # of two tiles of two blocks, eight warps each
    part = count(spec)
    of, other = part.execution.trace, whole.execution.trace
    for name in ("pc", "record_pc", "record_base", "executed"):
        assert np.array_equal(getattr(of, name), getattr(other, name)), name
    for name in ("start", "at", "barrier", "phase", "bytes", "records"):  # warps may take other turns
        assert np.array_equal(getattr(of.syncs, name), getattr(other.syncs, name)), name
    assert part.traffic.counters == whole.traffic.counters
    # 256 tiles: each block gets 128 rows of A and 256 columns of B, 128 bytes deep, but asks L2 for half of B only
    received, asked = 256 * (128 + 256) * 4, 256 * (128 + 128) * 4
    assert part.traffic.counters["l1tex__m_xbar2l1tex_read_sectors.sum"] == received
    assert part.traffic.counters["l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"] == received
    assert sum(row.l2_sectors for row in part.traffic.instructions if row.op == "tma_ld") == asked
    (stored,) = (np.flatnonzero(w) for w in part.execution.written if w is not None and w.any())
    (every,) = (np.flatnonzero(w) for w in whole.execution.written if w is not None and w.any())
    assert 2 * 128 * 256 <= len(stored) < len(every)
    assert check_results(part.execution, part.launch, spec).ok
    assert any("is not checked" in note for note in part.execution.notes)
    assert not any("is not checked" in note for note in whole.execution.notes)
