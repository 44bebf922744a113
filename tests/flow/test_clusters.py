"""Thread block clusters: results of kernels that use them against NumPy, what is refused, and deadlocks by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.support.errors import GemmsimError
from gemmsim.trace import words
from gemmsim.trace.execute import Executor
from gemmsim.trace.launch_data.clusters import Clusters, clusters_of
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Argument, Execution, Launch

SOURCE = (Path(__file__).parents[1] / "sources" / "clusters.cu").read_text().splitlines()
DTYPES = {"float32": "f32", "int32": "i32", "uint32": "u32"}
ARCHITECTURES = ("sm_90", "sm_120")
Dims = tuple[int, int, int]


def line(mark: str) -> int:
    return next(number for number, text in enumerate(SOURCE, 1) if f"[{mark}]" in text)


def executor(
    entry: str,
    grid: Dims,
    block: Dims,
    cluster: Dims | None,
    *args: np.ndarray | int,
    arch: str = "sm_90",
    shared: int = 0,
    file: str = "clusters.cu",
) -> Executor:
    given = tuple(
        Argument("i32", (), a) if isinstance(a, int) else Argument(DTYPES[a.dtype.name], a.shape, a) for a in args
    )
    launch = Launch(grid, block, given, shared, cluster=cluster)
    return Executor(cuda_program(file, entry, arch), launch, 20_000_000)


def run(*what: object, **how: object) -> Execution:
    one = executor(*what, **how)  # type: ignore[arg-type]
    return one.run(range(one.launch.blocks))


def output(execution: Execution, position: int) -> np.ndarray:
    found = execution.outputs[position]
    assert found is not None
    return found


def numbers_twin(grid: Dims, cluster: Dims) -> np.ndarray:
    """What %cluster_ctaid, %cluster_nctaid, %clusterid, %nclusterid, %cluster_ctarank, %cluster_nctarank say: one block
    after the other."""
    rows = []
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                place = [at % side for at, side in zip((x, y, z), cluster, strict=True)]
                number = [at // side for at, side in zip((x, y, z), cluster, strict=True)]
                counts = [blocks // side for blocks, side in zip(grid, cluster, strict=True)]
                rank = place[0] + cluster[0] * (place[1] + cluster[1] * place[2])
                rows.append([*place, *cluster, *number, *counts, rank, cluster[0] * cluster[1] * cluster[2]])
    return np.array(rows)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("grid", "cluster"),
    [((4, 2, 1), (2, 1, 1)), ((4, 4, 2), (2, 2, 1)), ((2, 6, 4), (1, 3, 2)), ((9, 1, 1), (3, 1, 1)), ((3, 2, 2), None)],
)
def test_special_registers(arch: str, grid: Dims, cluster: Dims | None) -> None:
    found = output(
        run("numbers", grid, (1, 1, 1), cluster, np.zeros((grid[0] * grid[1] * grid[2], 15), np.uint32), arch=arch), 0
    )
    assert np.array_equal(found[:, :14], numbers_twin(grid, cluster or (1, 1, 1)))
    assert (found[:, 14] == (cluster is not None)).all()


def test_places_and_members_are_inverse() -> None:
    clusters = Clusters((2, 1, 3), (4, 5, 6), True)
    members = clusters.members(np.arange(20))
    numbers, ranks = clusters.places(members.reshape(-1))
    assert numbers.tolist() == np.repeat(np.arange(20), 6).tolist()
    assert ranks.tolist() == list(range(6)) * 20
    assert members[0].tolist() == [0, 1, 20, 21, 40, 41]  # along x first, then z


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_kernel_may_name_its_cluster(arch: str) -> None:
    program = cuda_program("clusters.cu", "compiled_in", arch)
    assert (program.cluster, program.max_cluster_blocks) == ((2, 2, 1), None)
    assert cuda_program("clusters.cu", "bounded", arch).max_cluster_blocks == 4
    found = output(run("compiled_in", (4, 4, 1), (1, 1, 1), None, np.zeros((4, 4), np.uint32), arch=arch), 0)
    assert found.tolist() == [[400, 401, 400, 401], [402, 403, 402, 403]] * 2


@pytest.mark.parametrize(
    ("entry", "arch", "grid", "cluster", "message"),
    [
        (
            "numbers",
            "sm_90",
            (3, 1, 1),
            (2, 1, 1),
            "a grid of 3 x 1 x 1 blocks cannot be divided into clusters of 2 x 1 x 1",
        ),
        (
            "compiled_in",
            "sm_90",
            (4, 3, 1),
            None,
            "a grid of 4 x 3 x 1 blocks cannot be divided into clusters of 2 x 2 x 1",
        ),
        (
            "numbers",
            "sm_90",
            (17, 1, 1),
            (17, 1, 1),
            "a cluster of 17 x 1 x 1 has 17 blocks; at most 16 may form one here",
        ),
        ("numbers", "sm_120", (16, 1, 1), (16, 1, 1), "has 16 blocks; at most 8 may"),
        ("bounded", "sm_90", (8, 1, 1), (8, 1, 1), "has 8 blocks; at most 4 may"),
        (
            "compiled_in",
            "sm_90",
            (4, 4, 1),
            (4, 1, 1),
            "is compiled for clusters of 2 x 2 x 1 blocks, not of 4 x 1 x 1",
        ),
    ],
)
def test_launches_that_cuda_refuses(entry: str, arch: str, grid: Dims, cluster: Dims | None, message: str) -> None:
    program = cuda_program("clusters.cu", entry, arch)
    with pytest.raises(GemmsimError, match=message):
        clusters_of(program, Launch(grid, (32, 1, 1), (), cluster=cluster))


def test_clusters_need_sm_90() -> None:
    with pytest.raises(GemmsimError, match="clusters of blocks need sm_90 or later, and the GPU is sm_80"):
        clusters_of(
            cuda_program("residents.cu", "rotate", "sm_80"), Launch((2, 1, 1), (32, 1, 1), (), cluster=(2, 1, 1))
        )


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_reduction(arch: str, size: int) -> None:
    x = np.random.default_rng(0).integers(0, 9, (16, 96)).astype(np.float32)
    found = run("reduce", (16, 1, 1), (96, 1, 1), (size, 1, 1), x, np.zeros(16 // size, np.float32), arch=arch)
    assert output(found, 1).tolist() == x.reshape(16 // size, -1).sum(1).tolist()
    assert not found.one_order  # blocks that meet at barriers only do the same in any order


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_halo_exchange(size: int) -> None:
    x = np.random.default_rng(1).random((16 // size, 64 * size), np.float32)
    found = output(run("halo", (16, 1, 1), (64, 1, 1), (size, 1, 1), x, np.zeros_like(x)), 1)
    assert np.array_equal(found, np.roll(x, 1, 1) + x + np.roll(x, -1, 1))


def test_transposed_copy() -> None:
    a = np.arange(256 * 256, dtype=np.float32).reshape(256, 256)
    found = output(run("transposed", (8, 2, 1), (32, 8, 1), (4, 1, 1), a, np.zeros_like(a), 256), 1)
    assert np.array_equal(found, a.T)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("size", [2, 8])
def test_atomics_in_other_blocks(arch: str, size: int) -> None:
    values = np.random.default_rng(2).integers(0, 64, 3000).astype(np.int32)
    what = ("histogram", (8, 1, 1), (128, 1, 1), (size, 1, 1), values, np.zeros(64, np.int32), 64, 3000)
    assert np.array_equal(output(run(*what, shared=256 // size, arch=arch), 1), np.bincount(values, minlength=64))


@pytest.mark.parametrize(("size", "rounds"), [(1, 3), (2, 7), (4, 5), (8, 16)])
def test_barriers_keep_order(size: int, rounds: int) -> None:
    """After r rounds block b holds what began r blocks before it, raised by the ranks on its way, plus 1 each."""
    found = output(run("ring", (8, 1, 1), (32, 1, 1), (size, 1, 1), np.zeros((8, 32), np.uint32), rounds), 0)
    for block in range(8):
        way = sum((block % size - step) % size + 1 for step in range(1, rounds + 1))
        assert found[block].tolist() == [thread + way for thread in range(32)]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("target", [0, 3])
def test_ptx_instructions(arch: str, target: int) -> None:
    found = output(
        run("instructions", (4, 1, 1), (32, 1, 1), (4, 1, 1), np.zeros((4, 32, 6), np.uint32), target, arch=arch), 0
    )
    thread = np.arange(32)
    assert np.array_equal(found[..., 0], np.broadcast_to(4 * (1000 * target + 4 * (thread % 8)) + 6, (4, 32)))
    assert np.array_equal(found[..., 1], np.broadcast_to(1000 * target + 64 + thread, (4, 32)))
    assert (found[..., 2:4] == target).all()
    ranks = np.arange(4)
    counted = np.where(ranks == target, 1000 * target + 100 + 4 * 32, 1000 * ranks + 100)
    largest = np.where(ranks == target, 5003, 1000 * ranks + 101)
    assert np.array_equal(found[..., 4], np.broadcast_to(counted[:, None], (4, 32)))
    assert np.array_equal(found[..., 5], np.broadcast_to(largest[:, None], (4, 32)))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_gemm_with_shared_tiles(arch: str) -> None:
    a, b = (np.random.default_rng(s).integers(0, 5, (64, 64)).astype(np.float32) for s in (1, 2))
    found = run("shared_gemm", (4, 4, 1), (16, 16, 1), (2, 1, 1), a, b, np.zeros_like(a), 64, arch=arch)
    assert np.array_equal(output(found, 2), a @ b)


def test_a_flag_set_by_another_block() -> None:
    found = run("flagged", (4, 1, 1), (32, 1, 1), (2, 1, 1), np.zeros((4, 32), np.uint32), 1)
    assert output(found, 0)[::2].tolist() == [[7] * 32] * 2
    assert found.one_order  # how often it looks depends on time


def test_a_flag_that_nobody_sets() -> None:
    with pytest.raises(Stopped) as caught:
        run("flagged", (4, 1, 1), (32, 1, 1), (2, 1, 1), np.zeros((4, 32), np.uint32), 0)
    text = str(caught.value)
    assert caught.value.status == words.STUCK
    assert "kernel 'flagged' never ends: the barrier of cluster 0 (blocks 0, 1) does not open." in text
    assert "not arrived: block 0, warp 0 waits for a value at 'LDS" in text
    assert f"of line {line('flagged:wait')} of" in text


def test_crossed_barriers_are_named() -> None:
    with pytest.raises(Stopped) as caught:
        run("crossed", (4, 1, 1), (64, 1, 1), (2, 1, 1), np.zeros(256, np.uint32))
    text = str(caught.value)
    assert "the barrier of cluster 0 (blocks 0, 1) does not open. Threads wait at 'UCGABAR_WAIT'" in text
    assert "not arrived: block 1, warp 0 waits at a barrier of its block, 'BAR.SYNC.DEFER_BLOCKING 0x1, 0x40'" in text
    assert f"of line {line('crossed:block')} of" in text and f"of line {line('crossed:cluster')} of" in text


def test_blocks_that_have_ended_are_not_waited_for() -> None:
    found = output(run("left", (2, 1, 1), (32, 1, 1), (2, 1, 1), np.zeros(32, np.uint32), 0), 0)
    assert found.tolist() == [40] * 32


def test_memory_of_a_block_that_has_ended() -> None:
    with pytest.raises(Stopped, match="shared memory of a block of the cluster that has ended") as caught:
        run("left", (2, 1, 1), (32, 1, 1), (2, 1, 1), np.zeros(32, np.uint32), 1)
    assert f"line {line('left:read')} of" in str(caught.value)


def test_blocks_that_do_not_meet_run_one_by_one() -> None:
    x = np.arange(8 * 64, dtype=np.float32)
    one = executor("apart", (8, 1, 1), (64, 1, 1), (4, 1, 1), x, np.zeros_like(x))
    assert one.residents is None
    assert np.array_equal(output(one.run(range(8)), 1), 2 * x)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("size", [1, 2, 8])
def test_arrivals_at_mbarriers_of_other_blocks(arch: str, size: int) -> None:
    found = run("arrivals", (8, 1, 1), (32, 1, 1), (size, 1, 1), np.zeros((8, 32), np.uint32), 32, arch=arch)
    ranks = np.arange(8) % size
    assert np.array_equal(output(found, 0), 100 * ((ranks - 1) % size)[:, None] + np.arange(32))


def test_an_arrival_that_no_block_makes() -> None:
    with pytest.raises(Stopped) as caught:
        run("arrivals", (2, 1, 1), (32, 1, 1), (2, 1, 1), np.zeros((2, 32), np.uint32), 33)
    assert "of shared memory, phase 0, which lacks 1 of 33 arrivals, holds warp 0" in str(caught.value)
    assert f"line {line('arrivals:wait') + 1} of" in str(caught.value)


def test_an_arrival_at_a_block_that_has_ended_is_left_out_and_noted() -> None:
    found = run("late", (2, 1, 1), (32, 1, 1), (2, 1, 1), np.zeros((2, 32), np.uint32))
    assert output(found, 0).tolist() == [[5] * 32, [6] * 32]
    (note,) = (one for one in found.notes if "may have ended" in one)
    assert "SYNCS.ARRIVE" in note and f"of line {line('late:arrive')} of" in note


@pytest.mark.parametrize("target", [0, 1])
def test_spaces_of_generic_addresses(target: int) -> None:
    """As on an H200: another block's memory is not of the block's space, but all of it is of the cluster's."""
    found = output(run("spaces", (2, 1, 1), (32, 1, 1), (2, 1, 1), np.zeros((2, 6), np.uint32), target), 0)
    assert found.tolist() == [[1, 1, int(rank == target), 1, 0, 0] for rank in range(2)]


def test_dependent_launches() -> None:
    assert (output(run("dependents", (2, 1, 1), (32, 1, 1), None, np.zeros((2, 32), np.uint32)), 0) == 7).all()


def test_runs_of_bytes_for_several_blocks() -> None:
    """Each block loads half of each 64 words for both, by bulk copies, and adds the words up."""
    given = np.random.default_rng(4).integers(0, 1000, (5, 64)).astype(np.uint32)
    what = ("ring_right", (4, 1, 1), (64, 1, 1), (2, 1, 1), given, np.zeros((4, 32), np.uint32), 5)
    found = output(run(*what, file="broken_clusters.cu"), 1)
    assert (found == given.reshape(5, 2, 32).sum((0, 1))).all()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_blocks_send_one_another_arrives_before_its_mbarrier_says_so(arch: str) -> None:
    found = output(run("sends", (6, 1, 1), (32, 1, 1), (3, 1, 1), np.zeros(192, np.uint32), arch=arch), 0)
    from_rank = [2, 0, 1, 2, 0, 1]
    assert found.tolist() == [100 * rank + lane for rank in from_rank for lane in range(32)]
