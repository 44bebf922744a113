"""Blocks that ask in vain for too long are named, though they count meanwhile and so never come back to a state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.trace import words
from gemmsim.trace.execute import Executor
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Argument, Launch

SOURCE = (Path(__file__).parents[1] / "sources" / "residents.cu").read_text().splitlines()
BUDGET = 20_000_000  # of which blocks may ask 40,000 times in vain


def executor(blocks: int, most: int, budget: int = BUDGET, entry: str = "counts_meanwhile") -> Executor:
    program = cuda_program("residents.cu", entry, "sm_90")
    given = Argument("i32", (64,), np.zeros(64, np.int32)), Argument("i32", (), most)
    return Executor(program, Launch((blocks, 1, 1), (32, 1, 1), given), budget)


@pytest.mark.parametrize("blocks", [1, 3])
def test_waits_that_count_are_named(blocks: int) -> None:
    """Long before the budget is used up: looks are nine rounds apart, as 40,000 is nine times 4,096 and some."""
    with pytest.raises(Stopped) as error:
        executor(blocks, -1).run(range(blocks))
    found, line = str(error.value), next(n for n, text in enumerate(SOURCE, 1) if "[counted]" in text)
    assert error.value.status == words.STUCK
    who = "block 0 waits" if blocks == 1 else "block 0 and 2 more wait"
    assert f"never ends: {who} for a value that no block has written, after 40," in found
    asked = int(found.split("after ")[1].split(maxsplit=1)[0].replace(",", ""))
    assert 40_000 <= asked < 40_000 + 10
    assert f"line {line} of " in found and "raise --max-instructions if more are needed" in found


def test_waits_with_a_limit_end() -> None:
    """One that gives up after 39,000 attempts ends, and so does one of 41,000 with twice the budget."""
    (counted, _) = executor(1, 39_000).run([0]).outputs
    assert counted is not None and (counted[1:33] == 39_000).all()
    with pytest.raises(Stopped, match="after 40,"):
        executor(1, 41_000).run([0])
    (counted, _) = executor(1, 41_000, 2 * BUDGET).run([0]).outputs
    assert counted is not None and (counted[1:33] == 41_000).all()


@pytest.mark.parametrize("period", [7, 1000])
def test_states_that_come_back_are_found_though_they_are_compared_seldom(period: int) -> None:
    """The second cycle is longer than the rounds that are compared one by one."""
    with pytest.raises(Stopped, match="block 0 waits for a value that no block will write") as error:
        executor(1, period, entry="counts_round").run([0])
    assert error.value.status == words.STUCK
