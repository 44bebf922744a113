"""Generic addresses of parameters: code loads them from where the driver puts them in constant bank 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from opcode_harness import program

from gemmsim.isa.program import Parameter
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Argument, Launch


@pytest.mark.parametrize(("at", "plus"), [(0x198, 0x4), (0xC0, 0x214)])  # of the first parameter, and of the bank
def test_the_second_parameter_is_found_from_either_address(at: int, plus: int) -> None:
    lines = [f"ULDC.64 UR4, c[0x0][{at:#x}]", "MOV R2, UR4", "MOV R3, UR5", f"LDG.E R4, [R2.64+{plus:#x}]"]
    code = replace(program(lines, "sm_90"), parameters=(Parameter(0, 0, 4), Parameter(1, 4, 4)))
    launch = Launch((1, 1, 1), (32, 1, 1), (Argument("i32", (), 5), Argument("i32", (), 7)))
    executor = Executor(code, launch)
    executor.trace([0])
    assert (executor.state.registers.reshape(-1, 32)[4] == 7).all()


def test_both_addresses_are_of_one_memory() -> None:
    lines = ["ULDC.64 UR4, c[0x0][0x198]", "ULDC.64 UR6, c[0x0][0xc0]", "MOV R2, UR4", "MOV R3, UR6"]
    code = replace(program(lines, "sm_90"), parameters=(Parameter(0, 0, 4),))
    executor = Executor(code, Launch((1, 1, 1), (32, 1, 1), (Argument("i32", (), 5),)))
    executor.trace([0])
    rows = executor.state.registers.reshape(-1, 32).astype(np.int64)
    assert (rows[2] - rows[3] == 0x210).all()
