"""Whole launches with clusters: what is counted where, samples against full executions, the command line and plans."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.api import Counted, count
from gemmsim.cli.main import main
from gemmsim.compile.source import CudaKernel
from gemmsim.gpu import load_gpu
from gemmsim.launch.plan import PlanSettings, read_plan
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance
from gemmsim.trace.types import Argument, Launch

FILE = Path(__file__).parents[1] / "sources" / "clusters.cu"
GPU = load_gpu("h200")
Dims = tuple[int, int, int]


def spec(entry: str, grid: Dims, block: Dims, cluster: Dims | None, *args: Argument) -> LaunchSpec:
    launch = Launch(grid, block, args, cluster=cluster)
    return LaunchSpec(CudaKernel(FILE.read_text(), FILE, entry), launch, GPU, Labels(entry))


def zeros(*shape: int) -> Argument:
    return Argument("f32", shape, np.zeros(shape, np.float32))


def gemm(n: int) -> LaunchSpec:
    grid, number = (n // 16, n // 16, 1), Argument("i32", (), n)
    return spec("shared_gemm", grid, (16, 16, 1), (2, 1, 1), zeros(n, n), zeros(n, n), zeros(n, n), number)


def counters(one: LaunchSpec, **settings: object) -> Counted:
    program = cuda_program(FILE.name, one.labels.kernel, GPU.arch)
    return count(replace(one, settings=replace(one.settings, **settings)), program)  # type: ignore[arg-type]


def test_accesses_to_other_blocks_have_counters_of_their_own() -> None:
    """Each of 16 blocks has two warps, which store their words and load them, those before and those behind; the first
    word of the block and the last one come from its neighbours, by a load of one lane each."""
    counted = counters(spec("halo", (16, 1, 1), (64, 1, 1), (4, 1, 1), zeros(1024), zeros(1024)))
    found, how = counted.traffic.counters, counted.traffic.provenance
    remote = "l1tex__t_requests_pipe_lsu_mem_dshared_op_ld.sum"
    assert found[remote] == 16 * 2
    assert found["l1tex__t_bytes_pipe_lsu_mem_dshared.sum"] == 16 * 2 * 4
    assert how[remote] is Provenance.MODELLED
    assert found["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] == 16 * 2
    assert found["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 16 * 2 * 3  # left, middle and right
    assert found["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 16 * 2
    assert how["smsp__inst_executed.sum"] is Provenance.EXACT


def test_a_launch_without_clusters_has_no_such_counters() -> None:
    counted = counters(spec("halo", (16, 1, 1), (64, 1, 1), None, zeros(1024), zeros(1024)))
    assert not [name for name in counted.traffic.counters if "dshared" in name]


@pytest.mark.parametrize(
    "one",
    [
        gemm(96),
        spec("halo", (64, 1, 1), (64, 1, 1), (4, 1, 1), zeros(4096), zeros(4096)),
        spec(
            "transposed", (16, 4, 1), (32, 8, 1), (4, 1, 1), zeros(512, 512), zeros(512, 512), Argument("i32", (), 512)
        ),
        spec("apart", (64, 1, 1), (64, 1, 1), (8, 1, 1), zeros(4096), zeros(4096)),
        spec("reduce", (64, 1, 1), (64, 1, 1), (2, 1, 1), zeros(4096), zeros(32)),
    ],
    ids=lambda one: one.labels.kernel,
)
def test_samples_count_what_full_executions_count(one: LaunchSpec) -> None:
    whole, part = counters(one, full=True), counters(one, full_below=0)
    assert part.execution.sampled
    blocks = len(part.execution.trace.blocks)
    assert blocks < one.launch.blocks
    assert one.labels.kernel == "apart" or blocks % math.prod(one.launch.cluster or ()) == 0  # whole clusters
    exact = {name for name, how in whole.traffic.provenance.items() if how is Provenance.EXACT or "dshared" in name}
    assert {name: part.traffic.counters[name] for name in exact} == {
        name: whole.traffic.counters[name] for name in exact
    }


def test_clusters_that_depend_on_others_data_are_executed_in_full() -> None:
    """What a thread of `flagged` executes depends on what another block stores: there is no class."""
    one = spec("flagged", (64, 1, 1), (32, 1, 1), (2, 1, 1), Argument("u32", (64, 32), np.zeros((64, 32), np.uint32)))
    one = replace(one, launch=replace(one.launch, args=(*one.launch.args, Argument("i32", (), 1))))
    counted = counters(one, full_below=0)
    assert not counted.execution.sampled
    assert counted.traffic.provenance["smsp__inst_executed.sum"] is Provenance.MODELLED


@pytest.mark.parametrize(("size", "clusters"), [(1, 132), (2, 66), (4, 30), (8, 15), (16, 7)])
def test_clusters_at_once(size: int, clusters: int) -> None:
    """One block an SM, on GPCs of 8, five times 16 and twice 18 SMs, and four TPCs: a cluster of 4 leaves 12 SMs."""
    got = theoretical_occupancy(32, 200 << 10, 128, GPU, grid_blocks=16 * clusters, cluster_blocks=size)
    assert (got.blocks_per_sm, got.clusters_at_once) == (1, clusters)
    assert got.waves_per_sm == pytest.approx(16 / size)


def test_a_cluster_must_fit_a_gpc() -> None:
    small = replace(GPU, sm=replace(GPU.sm, count=4, gpc_sms=(2, 2), early_sms=0))
    with pytest.raises(GemmsimError, match="no cluster of 4 such blocks fits a GPC of h200"):
        theoretical_occupancy(32, 200 << 10, 128, small, cluster_blocks=4)


COMMAND = ["analyze", str(FILE), "--entry", "halo", "--gpu", "h200", "--grid", "16", "--block", "64"]
ARRAYS = ["--arg", "f32[1024]", "--arg", "f32[1024]=0"]


def test_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, *ARRAYS, "--cluster", "4", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["launch"]["cluster"] == [4, 1, 1]
    assert report["occupancy"]["clusters_at_once"] > 0
    assert report["counters"]["l1tex__t_requests_pipe_lsu_mem_dshared_op_ld.sum"] == 32
    assert {"dshared"} <= {row["space"] for row in report["lines"]}
    assert main([*COMMAND, *ARRAYS, "--cluster", "4"]) == 0
    said = capsys.readouterr().out
    assert "grid 16 x 1 in clusters of 4 x 1, block 64 x 1" in said
    assert "shared memory of other blocks of the cluster" in said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--cluster", "3"), "a grid of 16 x 1 x 1 blocks cannot be divided into clusters of 3 x 1 x 1"),
        (("--cluster", "0"), "--cluster '0' has a size below 1"),
    ],
)
def test_refusals_are_one_line(more: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, *ARRAYS, *more]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_the_sanitizer_follows_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, *ARRAYS, "--cluster", "4", "--sanitize"]) == 0
    assert "nothing found; every block executed" in capsys.readouterr().out


def test_in_a_plan(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[arrays]\nx = "f32[1024]"\ny = "f32[1024]=0"\n\n[[launch]]\nkernel = "{FILE}"\nentry = "halo"\ngrid = 16\n'
        'block = 64\ncluster = [2, 1, 1]\nargs = ["&x", "&y"]\n'
    )
    (one,) = read_plan(plan, PlanSettings(GPU, Settings()))
    assert one.launch.cluster == (2, 1, 1)
