"""Numbers that no launch and no GPU can have are refused in one line that says what would be right."""

from dataclasses import replace

import pytest

from gemmsim.gpu.load import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import Settings, clock_of
from gemmsim.support.errors import GemmsimError

A100 = load_gpu("a100")
MOST_ALONG_X = 2**31 - 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("l2.size=1e18B", "l2.size_bytes must be from 0 to 1.71799e.10, not 1e.18"),
        ("l2.size=1B", "is below one set of lines"),
        ("launch.overhead=1e300us", "launch.overhead_us must be from 0 to 1e.06"),
        ("dram.mixed_crowding=1", "dram.mixed_crowding must be from 0 to 0.99, not 1"),
        ("sm.count=100000000", "sm.count must be from 0 to 10000"),
        ("clock.sm_load=1e-9MHz", "clock.sm_load_hz must be from 1e.06"),
        ("barrier.arrival=999999999999999999", "barrier.arrival_cycles must be from 0 to 1e.07"),
    ],
)
def test_numbers_of_a_gpu(value: str, text: str) -> None:
    with pytest.raises(GemmsimError, match=text):
        load_gpu("a100", [value])


def test_grids() -> None:
    spec = ladder_launch(LadderCase("tiled", 64, 64, 64), A100, Settings())
    for grid in ((MOST_ALONG_X, 1, 1), (1, 65535, 65535)):
        assert replace(spec, launch=replace(spec.launch, grid=grid)).launch.grid == grid
    for grid in ((MOST_ALONG_X + 1, 1, 1), (1, 65536, 1), (1, 1, 65536)):
        with pytest.raises(GemmsimError, match="no GPU takes more than 2,147,483,647 x 65,535 x 65,535"):
            replace(spec, launch=replace(spec.launch, grid=grid))


def test_an_integer_factor() -> None:
    assert ladder_launch(LadderCase("igemm", 4, 4, 4, alpha=2.0**31 - 1), A100, Settings())
    with pytest.raises(GemmsimError, match=r"alpha 2.14748e.09 must be from -2,147,483,648 to 2,147,483,647"):
        ladder_launch(LadderCase("igemm", 4, 4, 4, alpha=2.0**31), A100, Settings())


def test_the_budget_of_instructions() -> None:
    assert Settings(max_instructions=10**18)
    with pytest.raises(GemmsimError, match="must be from 1 to"):
        Settings(max_instructions=10**18 + 1)


def test_clocks() -> None:
    assert [clock_of(text) for text in ("burst", "sustained")] == ["burst", "sustained"]
    assert [clock_of(text) for text in ("1410MHz", "locked=1.41GHz", "1410")] == [1.41e9] * 3
    for text in ("fast", "", "1410kg", "5kHz", "99GHz", "1.2.3GHz"):
        with pytest.raises(GemmsimError, match=r"^--clock"):
            clock_of(text)
