"""Every fp32 rung computes C = alpha A B + beta C on the simulator: any size, each architecture, every tunable."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_runs import run

from gemmsim.ladder import kernel_info, kernel_infos

pytest.importorskip("numba_cuda")

RUNGS = [name for name, info in kernel_infos().items() if "f32" in info.dtypes]
NOT_DEFAULT = [
    (name, tunable.name, value)
    for name in RUNGS
    for tunable in kernel_info(name).tunables
    for value in tunable.allowed
    if value != tunable.default
]

SIZES = st.one_of(st.integers(1, 12), st.sampled_from([15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130]))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", RUNGS)
@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(st.tuples(SIZES, SIZES, SIZES), st.sampled_from([1.0, -1.5]), st.sampled_from([0.0, 1.0, 0.5]))
@example((1, 1, 1), 1.0, 0.0)
@example((127, 129, 65), 1.5, 0.5)
@example((128, 128, 64), 1.0, 0.0)
@example((33, 40, 1), 1.0, 1.0)
@example((1, 36, 20), 1.0, 0.0)
def test_any_size(name: str, arch: str, sizes: tuple[int, int, int], alpha: float, beta: float) -> None:
    run(name, arch, sizes, alpha, beta)


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_89", "sm_120"])
@pytest.mark.parametrize("name", RUNGS)
def test_other_architectures(name: str, arch: str) -> None:
    run(name, arch, (67, 43, 21), 1.5, 0.5)


@pytest.mark.parametrize(("name", "tunable", "value"), NOT_DEFAULT)
def test_other_tunables(name: str, tunable: str, value: int) -> None:
    other: dict[str, int] = {tunable: value}
    run(name, "sm_90", (67, 139, 45), 1.5, 0.5, "f32", **other)


@pytest.mark.parametrize(("blocks", "group"), [(2, 1), (2, 2), (2, 8)])
def test_persistent_blocks_take_every_tile(blocks: int, group: int) -> None:
    """3 x 3 tiles for two blocks; a group of two rows leaves one of a single row."""
    run("persistent", "sm_90", (300, 270, 20), blocks=blocks, group=group)
