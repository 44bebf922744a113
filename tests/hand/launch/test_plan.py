"""Plans of several launches: what a file says, and what it says wrong in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gemmsim.gpu import load_gpu
from gemmsim.launch.plan import PlanSettings, read_plan
from gemmsim.launch.spec import GemmCheck, LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError

Read = Callable[[str], tuple[LaunchSpec, ...]]
ARRAYS = """[arrays]
A = "f32[8,4]"
B = "f32[4,8]"
C = "f32[8,8]=0"
"""
LAUNCH = """[[launch]]
kernel = "k.ptx"
entry = "k"
grid = [2, 1]
block = 32
"""
COMMON = PlanSettings(load_gpu("h200"), Settings(full=True), seed=3)


@pytest.fixture
def plan(tmp_path: Path) -> Read:
    (tmp_path / "k.ptx").write_text("//")

    def read(text: str) -> tuple[LaunchSpec, ...]:
        (tmp_path / "plan.toml").write_text(text)
        return read_plan(tmp_path / "plan.toml", COMMON)

    return read


def test_arrays_are_shared_by_name(plan: Read) -> None:
    one, two, again = plan(
        f"""{ARRAYS}
{LAUNCH}args = ["&C", "i32=7", "&A"]
shared = 64
cooperative = true
symbols = {{ scale = "f32=2" }}
{LAUNCH}args = ["&B[1]", "f32=2"]
repeat = 2
verify = {{ a = "A", b = "B", c = "C", alpha = 2, beta = 1 }}"""
    )
    for spec in (one, two):
        assert [a.name for a in spec.launch.args[:3]] == ["A", "B", "C"]
        assert (spec.gpu, spec.settings, spec.seed) == (COMMON.gpu, COMMON.settings, 3)
    assert one.launch.parameters == (2, 3, 0)
    assert one.launch.args[3].value == 7
    assert (one.launch.grid, one.launch.block) == ((2, 1, 1), (32, 1, 1))
    assert (one.launch.dynamic_shared_bytes, one.launch.cooperative, two.launch.cooperative) == (64, True, False)
    ((name, value),) = one.launch.symbols
    assert (name, np.asarray(value.value).tolist()) == ("scale", [2.0])
    row = two.launch.passed[0]
    assert not isinstance(row, int)
    assert [(a.array, a.plus_bytes) for a in row.addresses] == [(1, 32)]
    assert again is two
    assert one.verify is None
    assert isinstance(two.verify, GemmCheck)
    assert (two.verify.a, two.verify.b, two.verify.c, two.verify.alpha, two.verify.beta) == (0, 1, 2, 2.0, 1.0)
    assert two.labels.size == (8, 8, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[arrays", "not TOML"),
        (LAUNCH, "[arrays] is missing"),
        (ARRAYS, "there is no [[launch]]"),
        (f"{ARRAYS}{LAUNCH}gird = 2", "launch 1: unknown key 'gird' (did you mean 'grid'?): known are kernel"),
        (f'{ARRAYS}[[launch]]\nkernel = "k.ptx"\nblock = 32', "launch 1: 'grid' is missing"),
        (f'{ARRAYS}{LAUNCH}args = ["&D"]', "no array is called 'D'"),
        (f'{ARRAYS}{LAUNCH}args = ["f32[4]"]', "is an array of this launch: name it under [arrays]"),
        (f'{ARRAYS}{LAUNCH}args = ["{{i32=1, &{{&A}}}}"]', "is an array of this launch"),
        (f"{ARRAYS}{LAUNCH}symbols = 3", "symbols names variables"),
        (f"{ARRAYS}{LAUNCH}args = [3]", "expected a text in quotes, not 3"),
        (f"{ARRAYS}{LAUNCH}repeat = 0", "repeat = 0 must be a number from 1"),
        (f'{ARRAYS}{LAUNCH}verify = "gemm"', "verify names three arrays"),
        (
            f'{ARRAYS}{LAUNCH}verify = {{ a = "A", b = "B", c = "X" }}',
            "c = 'X' is none of the arrays: they are A, B, C",
        ),
        (f'{ARRAYS}{LAUNCH}verify = {{ a = "A", b = "C", c = "B" }}', "the arrays are A, B, C in order"),
    ],
)
def test_what_is_wrong_is_said(plan: Read, text: str, message: str) -> None:
    with pytest.raises(GemmsimError) as caught:
        plan(text)
    assert message in str(caught.value)


def test_a_plan_that_is_not_there() -> None:
    with pytest.raises(GemmsimError, match=r"cannot read nowhere.toml"):
        read_plan(Path("nowhere.toml"), COMMON)
