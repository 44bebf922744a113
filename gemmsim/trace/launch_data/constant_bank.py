"""Makes constant bank 0 of a launch: dimensions, the top of the stack, and the parameters as the ABI lays them out."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import Program
from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.support.plurals import plural
from gemmsim.trace import words
from gemmsim.trace.launch_data.clusters import Clusters, clusters_of
from gemmsim.trace.launch_data.device_memory import place_addresses
from gemmsim.trace.types import Launch, Packed

# Byte offsets in constant bank 0 of blockDim, gridDim and the top of the stack, read off the code that the CUDA 13
# toolchain makes for each architecture. Parameters that start at 0x380 belong to sm_100 and later.
_LAYOUT = {False: (0x0, 0xC, 0x28), True: (0x360, 0x370, 0x37C)}
_NEW_LAYOUT_FROM, _CLUSTERS_FROM = 0x380, 0x210  # first bases of parameters: those of sm_100 and of sm_90
BANK_BYTES = 0x1000 + 0x380
# Offsets at which the code reads the high words of generic addresses: of shared memory (sm_75 to sm_89; later there is
# SR_SWINHI) and of local memory.
_SHARED_WINDOW_AT, _LOCAL_WINDOW_AT, _NEW_LOCAL_WINDOW_AT = 0x1C, 0x24, 0x2FC
# Offsets of the bytes of dynamic shared memory of a block, and of those of shared memory that the system reserves. From
# sm_100 on the code subtracts 0xa0 times SR_CgaSize, which is taken to be 1, from 0x2ac.
_DYNAMIC_SHARED_AT, _RESERVED_SHARED_AT = {False: 0x2C, True: 0x2AC - 0xA0}, {False: 0x114, True: 0x16C}
# Offsets of what a kernel reads of its cluster: whether one was asked for, its shape, the reciprocals of its sides, the
# number of clusters along each axis, and the number of its blocks. An H200's driver fills them so (tests/records).
_EXPLICIT_AT, _SHAPE_AT, _RECIPROCALS_AT, _COUNTS_AT, _BLOCKS_AT = range(5)
_CLUSTER_AT = {
    False: (0x140, 0x144, 0x150, 0x15C, 0x188),
    True: (0x36C, 0x2A0 - 0xA0, 0x2B0 - 0xA0, 0x2C0 - 0xA0, 0x2CC - 0xA0),
}
# The driver gives this much to a thread whose stack the compiler cannot bound (recursion, function pointers): it is the
# default of cudaLimitStackSize.
_DEFAULT_STACK_BYTES = 1024


@cached_by_identity(8)
def stack_bytes(program: Program) -> int:
    """Return the bytes of local memory (the stack) that each thread has."""
    calls = any(row_of(i).kind is Kind.CALL for i in program.instructions)
    return -(-program.local_bytes // 16) * 16 + (_DEFAULT_STACK_BYTES if calls else 0)


def constant_bank(program: Program, launch: Launch, pointers: tuple[int | None, ...]) -> NDArray[np.uint32]:
    """Return constant bank 0 as 32-bit words, uint32 [BANK_BYTES / 4 or, for parameters of more than 4 KiB, more].

    pointers  device address of each array argument, None for scalars
    """
    stop = max((one.offset_bytes + one.size_bytes for one in program.parameters), default=0)
    bank = bytearray(max(BANK_BYTES, -(-(program.parameter_base + stop) // 16) * 16))
    block_at, grid_at, stack_at = _LAYOUT[program.usual_parameter_base >= _NEW_LAYOUT_FROM]
    struct.pack_into("<3I", bank, block_at, *launch.block)
    struct.pack_into("<3I", bank, grid_at, *launch.grid)
    struct.pack_into("<I", bank, stack_at, stack_bytes(program))
    newer = program.usual_parameter_base >= _NEW_LAYOUT_FROM
    struct.pack_into("<I", bank, _DYNAMIC_SHARED_AT[newer], launch.dynamic_shared_bytes)
    struct.pack_into("<I", bank, _RESERVED_SHARED_AT[newer], program.reserved_shared_bytes)
    if program.usual_parameter_base >= _NEW_LAYOUT_FROM:
        struct.pack_into("<I", bank, _NEW_LOCAL_WINDOW_AT, words.LOCAL_WINDOW)
    else:
        struct.pack_into("<I", bank, _SHARED_WINDOW_AT, words.SHARED_WINDOW)
        struct.pack_into("<I", bank, _LOCAL_WINDOW_AT, words.LOCAL_WINDOW)
    if program.usual_parameter_base >= _CLUSTERS_FROM:
        _place_cluster(bank, clusters_of(program, launch), _CLUSTER_AT[newer])
    values = [word for one in launch.passed for word in _words(program, launch, one, pointers)]
    if [len(value) for value in values] != [parameter.size_bytes for parameter in program.parameters]:
        raise GemmsimError(_mismatch(program, launch, values))
    for value, parameter in zip(values, program.parameters, strict=True):
        at = program.parameter_base + parameter.offset_bytes
        bank[at : at + len(value)] = value
    return np.frombuffer(bytes(bank), np.uint32).copy()


def _place_cluster(bank: bytearray, clusters: Clusters, at: tuple[int, ...]) -> None:
    """Write what a kernel reads of its cluster.

    Kernels multiply a block's place by the reciprocal and drop the fraction. The nearest float to the reciprocal gives
    the right cluster in each grid that CUDA allows.
    """
    struct.pack_into("<I", bank, at[_EXPLICIT_AT], clusters.explicit)
    struct.pack_into("<3I", bank, at[_SHAPE_AT], *clusters.shape)
    struct.pack_into("<3f", bank, at[_RECIPROCALS_AT], *(1 / side for side in clusters.shape))
    struct.pack_into("<3I", bank, at[_COUNTS_AT], *clusters.counts)
    struct.pack_into("<I", bank, at[_BLOCKS_AT], clusters.blocks)


def _words(program: Program, launch: Launch, passed: int | Packed, pointers: tuple[int | None, ...]) -> list[bytes]:
    """Return the bytes of one argument: one parameter, but for numba one for each word of an array's record."""
    if isinstance(passed, Packed):
        if program.abi == "numba":
            raise GemmsimError(
                f"kernel '{program.name}': a numba kernel takes arrays and scalars, not structs or addresses"
            )
        content = bytearray(passed.content)
        place_addresses(content, passed.addresses, pointers)
        return [bytes(content)]
    argument, pointer = launch.args[passed], pointers[passed]
    if pointer is None:
        return [scalar_bytes(argument.dtype, argument.value)]
    if program.abi != "numba":
        return [struct.pack("<Q", pointer)]
    if not argument.plain:
        what = f"array '{argument.name}'" if argument.name else f"argument {passed}"
        raise GemmsimError(f"{what}: a numba kernel is compiled for C-contiguous arrays, without pitch or offset")
    array = np.asarray(argument.value)
    # numba's array record: meminfo, parent, number of items, item size, data, shape, strides (numba.core.datamodel).
    fields = [0, 0, array.size, array.itemsize, pointer, *array.shape, *array.strides]
    return [struct.pack("<q", f) for f in fields]


def scalar_bytes(dtype: str, value: object) -> bytes:
    """Return the bytes of a scalar as the ABI passes it; the value of a type that NumPy lacks is its bit pattern."""
    return np.array(value, DTYPES[dtype].numpy_name).tobytes()


def _mismatch(program: Program, launch: Launch, values: list[bytes]) -> str:
    """Say which parameters the kernel takes and which were given."""
    if program.abi == "numba":
        return (
            f"kernel '{program.name}' takes {plural(len(program.parameters), 'parameter word')} "
            f"(a numba array of n dimensions takes 5 + 2n), "
            f"but the {len(launch.passed)} arguments given make {len(values)}"
        )
    wanted = [f"{p.ordinal}: {plural(p.size_bytes, 'byte')} at {p.offset_bytes:#x}" for p in program.parameters]
    lengths = ", ".join(str(len(value)) for value in values)
    given = (
        f"the {len(values)} given {'have' if len(values) > 1 else 'has'} {lengths} bytes" if values else "none is given"
    )
    pairs = enumerate(zip(values, program.parameters, strict=False))
    first = next((i for i, (value, parameter) in pairs if len(value) != parameter.size_bytes), None)
    differs = "" if first is None or len(values) != len(wanted) else f": parameter {first} differs"
    takes = f"{plural(len(wanted), 'parameter')} ({'; '.join(wanted)})" if wanted else "no parameters"
    return f"kernel '{program.name}' takes {takes}, but {given}{differs}"
