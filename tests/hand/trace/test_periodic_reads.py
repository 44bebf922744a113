"""Loads from an array that repeats read its elements, whatever repetition they are in."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.support.periodic_array import PERIOD_BYTES, periodic_array
from gemmsim.trace.execute import Executor
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS, DeviceMemory
from gemmsim.trace.types import Argument, Launch

PERIOD = PERIOD_BYTES // 4
ELEMENTS = 5 * PERIOD + 100
LANES = np.arange(32)


@pytest.mark.parametrize(
    "element",
    [
        LANES,
        3 * PERIOD - 16 + LANES,  # over the end of a repetition
        4 * PERIOD + 32 + LANES,
        LANES * (ELEMENTS // 32),  # in all repetitions at once
        np.where(LANES < 7, 2 * PERIOD + 5, ELEMENTS - 1 - LANES),
    ],
)
def test_lanes_get_their_elements(element: np.ndarray) -> None:
    array = periodic_array(np.arange(PERIOD, dtype=np.uint32), (ELEMENTS,))
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate(["LDG.E R2, [R4.64]", "EXIT"]))
    program = Program("text", "text", "sm_80", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    launch = Launch((1, 1, 1), (32, 1, 1), (Argument("u32", (ELEMENTS,), array),), parameters=())
    executor = Executor(program, launch)
    rows = executor.initial.reshape(1, -1, 32)
    rows[0, 4], rows[0, 5] = 4 * element, FIRST_ADDRESS >> 32
    executor.run([0])
    assert executor.state.registers.reshape(1, -1, 32)[0, 2].tolist() == (element % PERIOD).tolist()


def test_what_was_stored_is_kept_where_reads_are_forgotten() -> None:
    """It is in a copy, as something is about to be stored."""
    array = periodic_array(np.arange(PERIOD, dtype=np.uint32), (ELEMENTS,))
    memory = DeviceMemory((Argument("u32", (ELEMENTS,), array),))
    memory.own(0)
    memory._content[0][:4] = 7
    memory.forget_reads()
    assert memory.read(FIRST_ADDRESS, 5) == b"\7\7\7\7\1" and array[0] == 0
