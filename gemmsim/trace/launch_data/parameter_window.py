"""Provides the generic address of kernel parameters, which code takes of a `__grid_constant__` parameter.

On a GPU constant bank 0 lies in global memory, where generic loads read it too. The driver puts an address into the
bank: that of the bank itself up to sm_89, and that of the first parameter from sm_90 on. The offsets of that address
were read off the code that the CUDA 13 toolchain makes for each architecture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import OperandKind, Program
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.types import Argument

_NAME = "the kernel's parameters"
# Where the address stands in bank 0, by the offset at which the parameters begin.
_ADDRESS_AT = {0x160: 0x40, 0x210: 0x198, 0x380: 0x348}
_NEW_LAYOUT_FROM = 0x210


def parameter_window(program: Program) -> tuple[Argument, ...]:
    """Return the memory that generic loads of parameters read, as an array that the kernel does not name.

    The result is () where the code takes no address of a parameter.
    """
    at = _ADDRESS_AT.get(program.usual_parameter_base)
    if at is None or not program.parameters or not _reads(program, at):
        return ()
    size = _first(program) + _parameter_bytes(program)
    return (Argument("u8", (size,), np.zeros(size, np.uint8), _NAME),)


def place_window(bank: NDArray[np.uint32], program: Program, memory: DeviceMemory) -> None:
    """Write the window's address into constant bank 0, uint32 words, and the bank's content into the window."""
    address = memory.hidden.get(_NAME)
    if address is None:
        return
    at, first = _ADDRESS_AT[program.usual_parameter_base] // 4, _first(program)
    bank[at], bank[at + 1] = address & 0xFFFFFFFF, address >> 32
    start = program.parameter_base - first
    content = bank.view(np.uint8)[start : program.parameter_base + _parameter_bytes(program)]
    memory.set_hidden(_NAME, content)


def _reads(program: Program, offset: int) -> bool:
    return any(
        operand.kind is OperandKind.CONSTANT and operand.bank == 0 and operand.value == offset
        for instruction in program.instructions
        for operand in instruction.operands
    )


def _first(program: Program) -> int:
    """Return the byte of the window at which the first parameter lies."""
    return 0 if program.usual_parameter_base >= _NEW_LAYOUT_FROM else program.parameter_base


def _parameter_bytes(program: Program) -> int:
    return max(one.offset_bytes + one.size_bytes for one in program.parameters)
