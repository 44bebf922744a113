"""How the last blocks of a grid go to SMs, on an H200 and here: `tests/sources/block_tiles.cu`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from block_tiles import INSTANCES, SOURCE, predicted_us, tiles
from programs import cuda_program

from gemmsim.calls.launches import launch_spec
from gemmsim.trace.blocks.classes import classes_of
from gemmsim.trace.execute import Executor

ROWS: list[Any] = json.loads(Path(__file__).with_name("h200_last_blocks.json").read_text(encoding="utf-8"))["rows"]
SMS = 132
LAUNCH_US = 5.0  # of what was measured, in a launch between two events
# Blocks of two warps, four an SM, after which up to four more follow on one SM
UNEVEN = [row for row in ROWS if row[:2] == [[64, 64, 8, 8, 8], 4] and row[2] * row[3] == 638]
# Small shifts of blocks against each other move these to another way of taking turns (deviation 48).
OTHER_TURNS = (
    [[64, 64, 8, 4, 4], 2, 22, 14],
    [[64, 64, 8, 4, 4], 2, 22, 17],
)
TURNS_OFF = pytest.mark.xfail(strict=True, reason="11 and 4 % too fast since models 40 and 41 (deviation 48)")
TOO_FAST = pytest.mark.xfail(strict=True, reason="18 % too fast (deviation 49)")


def generations(row: list[Any]) -> int:
    """How many are full."""
    return int(row[2] * row[3] // (row[1] * SMS))


def test_on_an_h200_two_blocks_that_end_together_are_followed_by_two() -> None:
    """Two blocks of 256 threads that compute for a short time are. Two with 8 x 8 results end apart, as three do."""
    for tile, resident, across, down, _, sms in ROWS:
        full = across * down // (resident * SMS) * resident
        twice = sum(count for blocks, count in sms.items() if int(blocks) > full + 1)
        if resident == 2 and tile in ([32, 32, 16, 2, 2], [16, 16, 16, 1, 1]):
            assert twice > 0
        elif tile == [128, 128, 8, 8, 8]:
            assert twice == 0


def marks(row: list[Any]) -> tuple[pytest.MarkDecorator, ...]:
    """Of three numbers of last blocks the one between is slow."""
    if row in UNEVEN or row[:4] in OTHER_TURNS:
        return (TOO_FAST if row in UNEVEN else TURNS_OFF,)
    return (pytest.mark.slow,) if row[3] in (14, 20, 26) else ()


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=marks(row), id=str(row[:4])) for row in ROWS if generations(row) == 1 and row[2] == 22],
)
def test_launches_whose_last_generation_is_not_full(row: list[Any]) -> None:
    """Did each SM get one of the last blocks in turn, two blocks of 64 x 64 with 4 x 4 results would be 16 to 19 % too
    fast."""
    tile, resident, across, down, us, _ = row
    bound = 0.03 if (tile, resident) == ([64, 64, 8, 4, 4], 2) else 0.11
    assert predicted_us(tile, resident, down * tile[0], across * tile[1], "warm") == pytest.approx(
        us - LAUNCH_US, rel=bound
    )


def test_hundreds_of_blocks_of_a_long_kernel_are_two_classes() -> None:
    """To compare one with 637 others takes 197,000 evaluations. While there were 157,000, blocks led classes of their
    own until only 508 were left, and the launch took 20 s."""
    launch = tiles([64, 64, 8, 4, 4], 4, 29 * 64, 22 * 64, "warm")
    spec = launch_spec(launch.pop("kernel"), launch.pop("gpu"), launch)
    program = cuda_program(SOURCE.name, launch["entry"], spec.gpu.arch, INSTANCES)
    classes = classes_of(Executor(program, spec.launch_with_arrays()))
    assert classes is not None and [len(found.members) for found in classes] == [632, 6]
