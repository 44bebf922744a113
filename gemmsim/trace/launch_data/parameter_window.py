"""Provides the generic address of kernel parameters, which code takes of a `__grid_constant__` parameter.

On a GPU constant bank 0 lies in global memory, where generic loads read it too. The driver puts addresses into the
bank: that of the bank itself, and from sm_90 on that of the first parameter. The offsets of these addresses were read
off the code that the CUDA 13 toolchain makes for each architecture; that of the bank on sm_90 off kernels that cuBLAS
makes at run time (nvjet), which add 0x2c0 and 0x440 to it: there the parameters of captured launches hold tensor maps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import OperandKind, Program
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.types import Argument

_NAME = "the kernel's parameters"
# Where the addresses of the bank and of the first parameter stand in bank 0, by the offset at which parameters begin.
_BANK_AT = {0x160: 0x40, 0x210: 0xC0}
_FIRST_AT = {0x210: 0x198, 0x380: 0x348}


def parameter_window(program: Program) -> tuple[Argument, ...]:
    """Return the memory that generic loads of parameters read, as an array that the kernel does not name.

    The result is () where the code takes no address of a parameter.
    """
    if not program.parameters or not (_reads(program, _BANK_AT) or _reads(program, _FIRST_AT)):
        return ()
    size = _first(program) + _parameter_bytes(program)
    return (Argument("u8", (size,), np.zeros(size, np.uint8), _NAME),)


def place_window(bank: NDArray[np.uint32], program: Program, memory: DeviceMemory) -> None:
    """Write the window's address into constant bank 0, uint32 words, and the bank's content into the window."""
    address = memory.hidden.get(_NAME)
    if address is None:
        return
    first = _first(program)
    for offsets, plus in ((_BANK_AT, 0), (_FIRST_AT, first)):
        if _reads(program, offsets):
            at = offsets[program.usual_parameter_base] // 4
            bank[at], bank[at + 1] = (address + plus) & 0xFFFFFFFF, (address + plus) >> 32
    start = program.parameter_base - first
    content = bank.view(np.uint8)[start : program.parameter_base + _parameter_bytes(program)]
    memory.set_hidden(_NAME, content)


def _reads(program: Program, offsets: dict[int, int]) -> bool:
    return offsets.get(program.usual_parameter_base, -1) in bank_0_reads(program)


@cached_by_identity(8)
def bank_0_reads(program: Program) -> frozenset[int]:
    """Return the byte offsets in constant bank 0 that operands of the program name."""
    return frozenset(
        operand.value
        for instruction in program.instructions
        for operand in instruction.operands
        if operand.kind is OperandKind.CONSTANT and operand.bank == 0
    )


def _first(program: Program) -> int:
    """Return the byte of the window at which the first parameter lies."""
    return program.parameter_base if _reads(program, _BANK_AT) else 0


def _parameter_bytes(program: Program) -> int:
    return max(one.offset_bytes + one.size_bytes for one in program.parameters)
