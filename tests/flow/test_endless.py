"""Kernels that never end are named, soon, and those that only take long are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace import endless, words
from gemmsim.trace.execute import Executor
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Argument, Launch

SOURCE = (Path(__file__).parents[1] / "sources" / "endless.cu").read_text().splitlines()


def executor(entry: str, number: int, budget: int = 2_000_000_000) -> Executor:
    program = cuda_program("endless.cu", entry, "sm_80")
    given = Argument("u32", (64,), np.zeros(64, np.uint32)), Argument("u32", (), number)
    return Executor(program, Launch((1, 1, 1), (64, 1, 1), given), budget)


def of_text(texts: list[str], budget: int = 2_000_000_000) -> Executor:
    """One thread of instructions as text; R4 and R5 hold the address of an array of zeros."""
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate([*texts, "EXIT"]))
    program = Program("text", "text", "sm_80", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    zeros = Argument("u32", (64,), np.zeros(64, np.uint32))
    one = Executor(program, Launch((1, 1, 1), (1, 1, 1), (zeros,), parameters=()), budget)
    one.initial.reshape(1, -1, 32)[:, 5] = FIRST_ADDRESS >> 32
    return one


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endless, "PART", 1 << 12)


def stopped(launch: Executor) -> Stopped:
    with pytest.raises(Stopped) as error:
        launch.run([0])
    return error.value


def test_a_warp_that_comes_back_to_a_state_is_named() -> None:
    """One of 16 values of x a step: found in the first part, though two milliard instructions are allowed."""
    found = stopped(executor("cycle", 0))
    again = next(number for number, text in enumerate(SOURCE, 1) if "[again]" in text)
    assert found.status == words.STUCK
    assert str(found).startswith("kernel 'cycle' never ends: a warp does the same again every ")
    steps = int(str(found).split(" every ")[1].split()[0])
    assert steps % 16 == 0 and steps <= 16 * 12
    assert "(block 0, warp 1, '" in str(found)
    assert any(f"line {number} of " in str(found) for number in range(again - 3, again + 1))


def test_a_warp_alone_gets_a_tenth_of_the_budget() -> None:
    """R2 is even, so that it never is 3, and comes back to 0 after two milliard steps."""
    steps = ["IADD3 R2, R2, 0x2, RZ", "ISETP.NE.U32.AND P0, PT, R2, 0x3, PT", "@P0 BRA `(0x0)"]
    found = stopped(of_text(steps, 200_000))
    assert found.status == words.BUDGET
    ran = int(str(found).split("still running after ")[1].split()[0].replace(",", ""))
    assert 20_000 <= ran <= 20_000 + (1 << 12)
    assert "raise --max-instructions if it should" in str(found)


def test_registers_that_come_back_while_memory_changes_are_no_cycle() -> None:
    """Adds 1 to a word of memory until it is 3000, and clears its registers each time."""
    loop = ["LDG.E R2, [R4.64]", "IADD3 R2, R2, 0x1, RZ", "STG.E [R4.64], R2", "ISETP.GE.U32.AND P0, PT, R2, 0xbb8, PT"]
    one = of_text([*loop, "MOV R2, RZ", "@!P0 BRA `(0x0)"])
    (counted,) = one.run([0]).outputs
    assert counted is not None and counted[0] == 3000


@pytest.mark.parametrize("place", ["0x4", "0x2"])
def test_what_a_warp_stores_and_never_asks_for_does_not_change_it(place: str) -> None:
    """Waits for a word to be 7 while it counts in the next one, or in a byte of the word itself, which changes it."""
    adds = [f"LDG.E.U8 R6, [R4.64+{place}]", "IADD3 R6, R6, 0x1, RZ", f"STG.E.U8 [R4.64+{place}], R6"]
    waits = ["ISETP.NE.U32.AND P0, PT, R2, 0x7, PT", "@P0 BRA `(0x0)"]
    one = of_text(["LDG.E R2, [R4.64]", *adds, *waits], 400_000)
    found = stopped(one)
    if place == "0x2":
        assert found.status == words.BUDGET
        return
    assert found.status == words.STUCK and "does the same again every 6 instructions" in str(found)
    assert one.buffers.counters[words.ISSUED] < 2 << 12


def test_a_look_at_a_warp_leaves_no_trace() -> None:
    """Counts to 9000 in memory, and adds up elsewhere: it is looked at after 4096 instructions, of its 45,000."""
    adds = ["LDG.E R6, [R4.64+0x8]", "IADD3 R6, R6, 0x3, RZ", "STG.E [R4.64+0x8], R6"]
    counts = ["LDG.E R2, [R4.64]", "IADD3 R2, R2, 0x1, RZ", "STG.E [R4.64], R2"]
    until = ["ISETP.GE.U32.AND P0, PT, R2, 0x2328, PT", "MOV R6, RZ", "MOV R2, RZ", "@!P0 BRA `(0x0)"]
    one = of_text([*adds, *counts, *until])
    execution = one.run([0])
    (counted,) = execution.outputs
    assert counted is not None and counted[:3].tolist() == [9000, 0, 27000]
    assert execution.trace.executed.sum() == 10 * 9000 + 1
    assert len(execution.trace.record_pc) == 4 * 9000 and len(execution.trace.pc) == 10 * 9000 + 1


def test_warps_in_turn_may_use_the_whole_budget() -> None:
    """Each of two warps executes more than a tenth of the budget, but never for long without the other."""
    execution = executor("meet", 4000, 100_000).run([0])
    assert execution.trace.executed.sum() > 20_000
    assert "still running after 10000 warp instructions" in str(stopped(executor("meet", 2000, 10_000)))
