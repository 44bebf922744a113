"""Functions of the driver API about the driver itself, devices and contexts."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable

from gemmsim.gpu.spec import GpuSpec
from gemmsim.programs.c_calls import (
    INVALID_CONTEXT,
    INVALID_DEVICE,
    INVALID_VALUE,
    NOT_FOUND,
    NOT_SUPPORTED,
    RESULT_NAMES,
    DriverError,
    Handle,
    Int,
    Pointer,
    Uint,
    entry,
    put_int,
    put_text,
    put_word,
)
from gemmsim.programs.machine import Machine

_VERSION = 13000  # of the driver API: CUDA 13.0
_MAX_INT, _MAX_GRID_YZ = 2**31 - 1, 65535
_KHZ = 1000

# The value of each CUdevice_attribute that a GPU file or the programming guide (table of compute capabilities) gives.
_ATTRIBUTES: dict[int, Callable[[GpuSpec], int]] = {
    1: lambda gpu: gpu.sm.max_threads_per_block,
    2: lambda gpu: 1024,  # most threads of a block along x
    3: lambda gpu: 1024,
    4: lambda gpu: 64,
    5: lambda gpu: _MAX_INT,  # most blocks of a grid along x
    6: lambda gpu: _MAX_GRID_YZ,
    7: lambda gpu: _MAX_GRID_YZ,
    8: lambda gpu: gpu.shared.default_max_bytes_per_block,
    9: lambda gpu: 65536,  # bytes of constant memory
    10: lambda gpu: 32,  # lanes of a warp
    11: lambda gpu: _MAX_INT,  # pitch
    12: lambda gpu: gpu.sm.registers,  # of a block
    13: lambda gpu: round(gpu.clock.sm_boost_hz / _KHZ),
    15: lambda gpu: 1,  # copies overlap with kernels
    16: lambda gpu: gpu.sm.count,
    17: lambda gpu: 0,  # no limit of run time
    18: lambda gpu: 0,  # not integrated
    19: lambda gpu: 1,  # maps memory of the host
    20: lambda gpu: 0,  # compute mode: default
    31: lambda gpu: 1,  # concurrent kernels
    33: lambda gpu: 0,  # PCI bus, device and domain
    34: lambda gpu: 0,
    50: lambda gpu: 0,
    38: lambda gpu: gpu.l2.size_bytes,
    39: lambda gpu: gpu.sm.max_warps * 32,
    40: lambda gpu: 1,  # copy engines
    41: lambda gpu: 1,  # unified addressing
    75: lambda gpu: _capability(gpu)[0],
    76: lambda gpu: _capability(gpu)[1],
    78: lambda gpu: 0,  # no priorities of streams
    79: lambda gpu: 1,  # L1 caches globals
    80: lambda gpu: 1,
    81: lambda gpu: gpu.shared.max_bytes_per_sm,
    82: lambda gpu: gpu.sm.registers,
    83: lambda gpu: 1,  # managed memory
    84: lambda gpu: 0,
    86: lambda gpu: 0,
    87: lambda gpu: round(gpu.peak.fp32_flops / gpu.peak.fp64_flops) if gpu.peak.fp64_flops else 0,
    88: lambda gpu: 0,  # pageable memory
    89: lambda gpu: 0,  # the host may touch managed memory while a kernel runs
    91: lambda gpu: 0,  # registered memory has a device address of its own
    95: lambda gpu: 1,  # cooperative launch
    97: lambda gpu: gpu.shared.max_bytes_per_block,
    106: lambda gpu: gpu.sm.max_blocks,
    111: lambda gpu: gpu.shared.reserved_bytes_per_block,
    115: lambda gpu: 0,  # memory pools
    120: lambda gpu: int(_capability(gpu)[0] >= 9),  # clusters
}


def _capability(gpu: GpuSpec) -> tuple[int, int]:
    return divmod(int(gpu.arch.removeprefix("sm_").rstrip("af")), 10)


@entry("cuInit")
def init(machine: Machine, flags: Uint) -> None:
    """Do nothing: the machine is there before the library is."""


@entry("cuDriverGetVersion")
def driver_get_version(machine: Machine, version: Pointer) -> None:
    put_int(version, _VERSION)


@entry("cuGetExportTable")
def get_export_table(machine: Machine, table: Pointer, identity: Pointer) -> None:
    """Give none of the tables, which are not documented. NVRTC asks for one, and goes on without it."""
    put_word(table, 0)
    raise DriverError(NOT_FOUND)


@entry("cuGetErrorName", "cuGetErrorString")
def get_error_name(machine: Machine, code: Int, text: Pointer) -> None:
    if code not in RESULT_NAMES:
        raise DriverError(INVALID_VALUE)
    put_word(text, ctypes.cast(RESULT_NAMES[code], ctypes.c_void_p).value or 0)


@entry("cuDeviceGetCount")
def device_get_count(machine: Machine, count: Pointer) -> None:
    put_int(count, 1)


@entry("cuDeviceGet")
def device_get(machine: Machine, device: Pointer, ordinal: Int) -> None:
    if ordinal:
        raise DriverError(INVALID_DEVICE)
    put_int(device, 0)


@entry("cuDeviceGetName")
def device_get_name(machine: Machine, name: Pointer, room: Int, device: Int) -> None:
    put_text(name, machine.gpu.title, room)


@entry("cuDeviceTotalMem")
def device_total_mem(machine: Machine, size: Pointer, device: Int) -> None:
    put_word(size, machine.gpu.dram.size_bytes)


@entry("cuDeviceGetAttribute")
def device_get_attribute(machine: Machine, value: Pointer, attribute: Int, device: Int) -> None:
    if attribute not in _ATTRIBUTES:
        raise DriverError(NOT_SUPPORTED)
    put_int(value, _ATTRIBUTES[attribute](machine.gpu))


@entry("cuDeviceComputeCapability")
def device_compute_capability(machine: Machine, major: Pointer, minor: Pointer, device: Int) -> None:
    for place, number in zip((major, minor), _capability(machine.gpu), strict=True):
        put_int(place, number)


@entry("cuDeviceGetUuid")
def device_get_uuid(machine: Machine, uuid: Pointer, device: Int) -> None:
    """Write a UUID that the GPU's numbers decide."""
    ctypes.memmove(uuid, hashlib.sha256(machine.gpu.sha256.encode()).digest()[:16], 16)


@entry("cuDeviceGetPCIBusId")
def device_get_pci_bus_id(machine: Machine, text: Pointer, room: Int, device: Int) -> None:
    put_text(text, "0000:00:00.0", room)


@entry("cuDeviceCanAccessPeer")
def device_can_access_peer(machine: Machine, can: Pointer, device: Int, peer: Int) -> None:
    put_int(can, 0)


@entry("cuDevicePrimaryCtxRetain")
def primary_ctx_retain(machine: Machine, context: Pointer, device: Int) -> None:
    put_word(context, machine.primary_context)


@entry("cuDevicePrimaryCtxRelease")
def primary_ctx_release(machine: Machine, device: Int) -> None:
    pass


@entry("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxSetFlags")
def primary_ctx_reset(machine: Machine, device: Int) -> None:
    pass


@entry("cuDevicePrimaryCtxGetState")
def primary_ctx_get_state(machine: Machine, device: Int, flags: Pointer, active: Pointer) -> None:
    put_int(flags, 0)
    put_int(active, 1)


@entry("cuCtxGetCurrent")
def ctx_get_current(machine: Machine, context: Pointer) -> None:
    put_word(context, machine.contexts[-1] if machine.contexts else 0)


@entry("cuCtxSetCurrent")
def ctx_set_current(machine: Machine, context: Handle) -> None:
    machine.contexts[-1:] = [context] if context else []


@entry("cuCtxPushCurrent")
def ctx_push_current(machine: Machine, context: Handle) -> None:
    machine.contexts.append(context)


@entry("cuCtxPopCurrent")
def ctx_pop_current(machine: Machine, context: Pointer) -> None:
    if not machine.contexts:
        raise DriverError(INVALID_CONTEXT)
    put_word(context, machine.contexts.pop())


@entry("cuCtxGetDevice")
def ctx_get_device(machine: Machine, device: Pointer) -> None:
    put_int(device, 0)


@entry("cuCtxGetApiVersion")
def ctx_get_api_version(machine: Machine, context: Handle, version: Pointer) -> None:
    put_int(version, _VERSION)


@entry("cuCtxGetStreamPriorityRange")
def ctx_get_stream_priority_range(machine: Machine, least: Pointer, greatest: Pointer) -> None:
    put_int(least, 0)
    put_int(greatest, 0)


@entry("cuCtxSynchronize")
def ctx_synchronize(machine: Machine) -> None:
    """Return at once: a launch has ended when the call that makes it returns."""
