"""Makes constant bank 0 of a launch: dimensions, the top of the stack, and the parameters as the ABI lays them out."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import words
from gemmsim.trace.types import Argument, Launch

# Byte offsets in constant bank 0 of blockDim, gridDim and the top of the stack, read off the code that the CUDA 13
# toolchain makes for each architecture. Parameters that start at 0x380 belong to sm_100 and later.
_LAYOUT = {False: (0x0, 0xC, 0x28), True: (0x360, 0x370, 0x37C)}
_NEW_LAYOUT_FROM = 0x380
_SCALARS = {
    "f32": "<f",
    "f64": "<d",
    "i8": "<b",
    "i32": "<i",
    "i64": "<q",
    "u8": "<B",
    "u32": "<I",
    "u64": "<Q",
    "f16": "<e",
}
BANK_BYTES = 0x1000 + 0x380
# Offsets at which the code reads the high words of generic addresses: of shared memory (sm_75 to sm_89; later there is
# SR_SWINHI) and of local memory.
_SHARED_WINDOW_AT, _LOCAL_WINDOW_AT, _NEW_LOCAL_WINDOW_AT = 0x1C, 0x24, 0x2FC
# The driver gives this much to a thread whose stack the compiler cannot bound (recursion, function pointers): it is the
# default of cudaLimitStackSize.
_DEFAULT_STACK_BYTES = 1024


@cached_by_identity(8)
def stack_bytes(program: Program) -> int:
    """Return the bytes of local memory (the stack) that each thread has."""
    calls = any(row_of(i).kind is Kind.CALL for i in program.instructions)
    return -(-program.local_bytes // 16) * 16 + (_DEFAULT_STACK_BYTES if calls else 0)


def constant_bank(program: Program, launch: Launch, pointers: tuple[int | None, ...]) -> NDArray[np.uint32]:
    """Return constant bank 0 as 32-bit words, uint32 [BANK_BYTES / 4].

    pointers  device address of each array argument, None for scalars
    """
    bank = bytearray(BANK_BYTES)
    block_at, grid_at, stack_at = _LAYOUT[program.parameter_base >= _NEW_LAYOUT_FROM]
    struct.pack_into("<3I", bank, block_at, *launch.block)
    struct.pack_into("<3I", bank, grid_at, *launch.grid)
    struct.pack_into("<I", bank, stack_at, stack_bytes(program))
    if program.parameter_base >= _NEW_LAYOUT_FROM:
        struct.pack_into("<I", bank, _NEW_LOCAL_WINDOW_AT, words.LOCAL_WINDOW)
    else:
        struct.pack_into("<I", bank, _SHARED_WINDOW_AT, words.SHARED_WINDOW)
        struct.pack_into("<I", bank, _LOCAL_WINDOW_AT, words.LOCAL_WINDOW)
    values = [word for a, p in zip(launch.args, pointers, strict=True) for word in _words(program, a, p)]
    if len(values) != len(program.parameters):
        wanted = len(program.parameters)
        what = (
            "parameter words (a numba array of n dimensions takes 5 + 2n)" if program.abi == "numba" else "parameters"
        )
        raise GemmsimError(
            f"kernel '{program.name}' takes {wanted} {what}, "
            f"but the {len(launch.args)} arguments given make {len(values)}"
        )
    for value, parameter in zip(values, program.parameters, strict=True):
        if len(value) != parameter.size_bytes:
            raise GemmsimError(
                f"parameter {parameter.ordinal} of kernel '{program.name}' is {parameter.size_bytes} bytes long, "
                f"the argument given is {len(value)}: check its type"
            )
        at = program.parameter_base + parameter.offset_bytes
        bank[at : at + len(value)] = value
    return np.frombuffer(bytes(bank), np.uint32).copy()


def _words(program: Program, argument: Argument, pointer: int | None) -> list[bytes]:
    if pointer is None:
        if argument.dtype == "bf16":
            return [struct.pack("<H", int(argument.value))]  # type: ignore[call-overload]
        return [struct.pack(_SCALARS[argument.dtype], argument.value)]
    if program.abi != "numba":
        return [struct.pack("<Q", pointer)]
    array = np.asarray(argument.value)
    # numba's array record: meminfo, parent, number of items, item size, data, shape, strides (numba.core.datamodel).
    fields = [0, 0, array.size, array.itemsize, pointer, *array.shape, *array.strides]
    return [struct.pack("<q", f) for f in fields]
