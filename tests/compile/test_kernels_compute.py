"""Every fp32 rung computes C = alpha A B + beta C on the simulator: any size, each architecture, every tunable."""

from __future__ import annotations

import math

import pytest
from cubins import SM_86
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_runs import run

from gemmsim.launch.ladder import kernel_info, kernel_infos
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import execute

pytest.importorskip("numba_cuda")

RUNGS = [name for name, info in kernel_infos().items() if "f32" in info.dtypes and info.operand_roundoff == 0]
HALF_RUNGS = ["hgemm_warptiled"]  # sums in float32, without tensor cores
FROM_SM_80 = {"async_pipelined"}  # cp.async


def farthest(default: int, allowed: tuple[int, ...]) -> int:
    """The value that is farthest from the default."""
    return max(allowed, key=lambda value: abs(math.log2((value + 1) / (default + 1))))


# By default only the last tunable of each rung is changed: numba takes some seconds to compile each. Those of the first
# rungs are changed by tests of their own below, and the tiles of the last are those of `warptiled`.
CHANGED_ELSEWHERE = ("persistent", "split_k", "fused_epilogue")
OTHER_TUNABLES = [
    pytest.param(
        name,
        one.name,
        value,
        marks=()
        if last == one and value == farthest(one.default, one.allowed) and name not in CHANGED_ELSEWHERE
        else pytest.mark.slow,
    )
    for name in RUNGS
    for last in kernel_info(name).tunables[-1:]
    for one in kernel_info(name).tunables
    for value in one.allowed
    if value != one.default
]

SIZES = st.one_of(st.integers(1, 12), st.sampled_from([15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130]))


@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.slow), "sm_90"])
@pytest.mark.parametrize("name", RUNGS)
@settings(max_examples=2, deadline=None, derandomize=True, database=None)
@given(st.tuples(SIZES, SIZES, SIZES), st.sampled_from([1.0, -1.5]), st.sampled_from([0.0, 1.0, 0.5]))
@example((1, 1, 1), 1.0, 0.0)
@example((127, 129, 65), 1.5, 0.5)
@example((128, 128, 64), 1.0, 0.0)
@example((33, 40, 1), 1.0, 1.0)
@example((1, 36, 20), 1.0, 0.0)
def test_any_size(name: str, arch: str, sizes: tuple[int, int, int], alpha: float, beta: float) -> None:
    run(name, arch, sizes, alpha, beta)


UNSHIPPED = [pytest.param(arch, marks=pytest.mark.slow) for arch in ("sm_87", "sm_100")]


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", SM_86, *UNSHIPPED, "sm_89", "sm_120"])
@pytest.mark.parametrize("name", RUNGS)
def test_other_architectures(name: str, arch: str) -> None:
    if arch == "sm_75" and name in FROM_SM_80:
        with pytest.raises(GemmsimError, match="sm_80 or higher"):
            run(name, arch, (1, 1, 1))
        return
    run(name, arch, (67, 43, 21), 1.5, 0.5)


@pytest.mark.parametrize(("name", "tunable", "value"), OTHER_TUNABLES)
def test_other_tunables(name: str, tunable: str, value: int) -> None:
    other: dict[str, int] = {tunable: value}
    run(name, "sm_90", (67, 139, 45), 1.5, 0.5, "f32", **other)


@pytest.mark.parametrize(("blocks", "group"), [(2, 2), *(pytest.param(2, n, marks=pytest.mark.slow) for n in (1, 8))])
def test_persistent_blocks_take_every_tile(blocks: int, group: int) -> None:
    """3 x 3 tiles for two blocks; a group of two rows leaves one of a single row. Groups of one row and of all of them
    are the simpler cases."""
    run("persistent", "sm_80", (300, 270, 20), blocks=blocks, group=group)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", HALF_RUNGS)
@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(st.tuples(SIZES, SIZES, SIZES), st.sampled_from([1.0, -1.5]), st.sampled_from([0.0, 1.0, 0.5]))
@example((1, 1, 1), 1.0, 0.0)
@example((127, 129, 65), 1.5, 0.5)
@example((136, 136, 64), 1.0, 0.0)  # rows of whole eights
@example((33, 40, 1), 1.0, 1.0)
@example((1, 32, 24), 1.0, 0.0)
def test_half_precision_any_size(name: str, dtype: str, sizes: tuple[int, int, int], alpha: float, beta: float) -> None:
    run(name, "sm_90", sizes, alpha, beta, dtype)


@pytest.mark.parametrize("arch", ["sm_80", SM_86, "sm_89", "sm_120"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", HALF_RUNGS)
def test_half_precision_other_architectures(name: str, dtype: str, arch: str) -> None:
    run(name, arch, (67, 43, 21), 1.5, 0.5, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
@pytest.mark.parametrize("name", HALF_RUNGS)
def test_half_precision_tunables(name: str, arch: str) -> None:
    """The loop over K is that of `warptiled`, of which a depth is changed by default."""
    run(name, arch, (67, 136, 24), 1.5, 0.5, "f16", bk=8)


@pytest.mark.parametrize("stages", [2, 3, pytest.param(4, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("depth", [1, 8, 9, 16, 40, 41])
def test_rings_of_any_length(stages: int, depth: int) -> None:
    """Fewer tiles than the ring holds, as many, and more. Four stages lie between those that are tried by default."""
    run("async_pipelined", "sm_90", (30, 36, depth), 1.5, 0.5, stages=stages)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (130, 131, 17), (130, 132, 200)])
@pytest.mark.parametrize(
    ("splits", "atomics"),
    [(2, 0), (2, 1), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((16, 1), (16, 0)))],
)
def test_the_last_block_of_a_tile_leaves_zeros(splits: int, sizes: tuple[int, int, int], atomics: int) -> None:
    """Fewer tiles of K than blocks, too. What was zero before the launch is zero after it: it can be launched again. By
    default those that other tests compile, too; in four parts it is the next one."""
    done, _, _ = run("split_k", "sm_90", sizes, 1.5, 0.0, splits=splits, atomics=atomics)
    workspace, counters = done.outputs[5:]
    assert counters is not None and not counters.any()
    assert workspace is not None and (not workspace.any() or not atomics)


def test_blocks_of_split_k_in_another_order() -> None:
    """The sheets are added in their own order whatever the order of arrival: C is the same to the last bit."""
    done, launch, program = run("split_k", "sm_90", (130, 132, 200), splits=4)
    backwards = execute(program, launch, blocks=range(launch.blocks)[::-1])
    assert (backwards.outputs[2] == done.outputs[2]).all()
