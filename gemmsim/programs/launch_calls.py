"""Functions of the driver API that launch kernels, and order work by streams and events.

A launch is executed while the call that makes it runs, so whatever a stream or an event waits for has ended.
"""

from __future__ import annotations

import ctypes
import struct

from gemmsim.programs.c_calls import (
    INVALID_VALUE,
    NOT_READY,
    NOT_SUPPORTED,
    DriverError,
    Handle,
    Int,
    Pointer,
    Uint,
    entry,
    put,
    put_int,
    put_word,
)
from gemmsim.programs.launching import Asked, launch
from gemmsim.programs.machine import Event, Machine, Stream
from gemmsim.programs.modules import DeviceKernel

_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0  # CU_LAUNCH_PARAM_...
_COOPERATIVE, _CLUSTER = 2, 4  # CUlaunchAttributeID
# Attributes that do not change what a kernel does: access policy, scheduling policies, priorities, memory domains, the
# carve-out that the program would like.
_WITHOUT_EFFECT = {0, 1, 3, 5, 8, 9, 10, 14}
_ATTRIBUTE_BYTES, _VALUE_AT = 72, 8
_US_A_MS = 1e3


@entry("cuLaunchKernel")
def launch_kernel(
    machine: Machine,
    function: Handle,
    grid_x: Uint,
    grid_y: Uint,
    grid_z: Uint,
    block_x: Uint,
    block_y: Uint,
    block_z: Uint,
    shared: Uint,
    stream: Handle,
    parameters: Pointer,
    extra: Pointer,
) -> None:
    kernel = machine.handles.get(function, DeviceKernel)
    grid, block = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
    launch(machine, Asked(kernel, grid, block, _parameters(kernel, parameters, extra), shared))


@entry("cuLaunchCooperativeKernel")
def launch_cooperative_kernel(
    machine: Machine,
    function: Handle,
    grid_x: Uint,
    grid_y: Uint,
    grid_z: Uint,
    block_x: Uint,
    block_y: Uint,
    block_z: Uint,
    shared: Uint,
    stream: Handle,
    parameters: Pointer,
) -> None:
    kernel = machine.handles.get(function, DeviceKernel)
    grid, block = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
    launch(machine, Asked(kernel, grid, block, _parameters(kernel, parameters, 0), shared, cooperative=True))


@entry("cuLaunchKernelEx")
def launch_kernel_ex(machine: Machine, config: Pointer, function: Handle, parameters: Pointer, extra: Pointer) -> None:
    """Launch by a CUlaunchConfig: seven sizes, the stream, and attributes."""
    kernel = machine.handles.get(function, DeviceKernel)
    *sizes, _, attributes, count = struct.unpack("<7I4xQQI", ctypes.string_at(config, 52))
    cluster, cooperative = None, False
    for number in range(count):
        at = attributes + _ATTRIBUTE_BYTES * number
        kind = ctypes.c_int.from_address(at).value
        if kind == _COOPERATIVE:
            cooperative = bool(ctypes.c_int.from_address(at + _VALUE_AT).value)
        elif kind == _CLUSTER:
            cluster = struct.unpack("<3I", ctypes.string_at(at + _VALUE_AT, 12))
        elif kind not in _WITHOUT_EFFECT:
            machine.refused.append(f"cuLaunchKernelEx with attribute {kind}")
            raise DriverError(NOT_SUPPORTED)
    grid, block = (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5])
    given = _parameters(kernel, parameters, extra)
    launch(machine, Asked(kernel, grid, block, given, sizes[6], cluster, cooperative))


def _parameters(kernel: DeviceKernel, parameters: int, extra: int) -> tuple[bytes, ...]:
    """Read the kernel's parameters: from an array of pointers to them or, where `extra` has it, from one buffer."""
    layout = kernel.program.parameters
    if parameters:
        places = (ctypes.c_uint64 * len(layout)).from_address(parameters) if layout else ()
        return tuple(ctypes.string_at(place, one.size_bytes) for place, one in zip(list(places), layout, strict=True))
    buffer, at = 0, extra
    while at and (key := ctypes.c_uint64.from_address(at).value) != _END:
        if key == _BUFFER_POINTER:
            buffer = ctypes.c_uint64.from_address(at + 8).value
        at += 16
    if layout and not buffer:
        raise DriverError(INVALID_VALUE)
    return tuple(ctypes.string_at(buffer + one.offset_bytes, one.size_bytes) for one in layout)


@entry("cuStreamCreate")
def stream_create(machine: Machine, stream: Pointer, flags: Uint) -> None:
    put_word(stream, machine.handles.new(Stream()))


@entry("cuStreamCreateWithPriority")
def stream_create_with_priority(machine: Machine, stream: Pointer, flags: Uint, priority: Int) -> None:
    put_word(stream, machine.handles.new(Stream()))


@entry("cuStreamDestroy", "cuEventDestroy")
def destroy(machine: Machine, handle: Handle) -> None:
    machine.handles.drop(handle)


@entry("cuStreamSynchronize", "cuStreamQuery", "cuEventSynchronize")
def synchronize(machine: Machine, handle: Handle) -> None:
    pass


@entry("cuStreamWaitEvent")
def stream_wait_event(machine: Machine, stream: Handle, event: Handle, flags: Uint) -> None:
    pass


@entry("cuStreamGetCtx")
def stream_get_ctx(machine: Machine, stream: Handle, context: Pointer) -> None:
    put_word(context, machine.primary_context)


@entry("cuStreamGetDevice")
def stream_get_device(machine: Machine, stream: Handle, device: Pointer) -> None:
    put_int(device, 0)


@entry("cuStreamGetFlags", "cuStreamGetPriority")
def stream_get_flags(machine: Machine, stream: Handle, flags: Pointer) -> None:
    put_int(flags, 0)


@entry("cuStreamIsCapturing")
def stream_is_capturing(machine: Machine, stream: Handle, status: Pointer) -> None:
    put_int(status, 0)


@entry("cuStreamAddCallback")
def stream_add_callback(machine: Machine, stream: Handle, function: Pointer, data: Pointer, flags: Uint) -> None:
    """Call the function at once: what the stream had to do has ended."""
    called = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64)(function)
    called(stream, 0, data)


@entry("cuLaunchHostFunc")
def launch_host_func(machine: Machine, stream: Handle, function: Pointer, data: Pointer) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_uint64)(function)(data)


@entry("cuEventCreate")
def event_create(machine: Machine, event: Pointer, flags: Uint) -> None:
    put_word(event, machine.handles.new(Event()))


@entry("cuEventRecord")
def event_record(machine: Machine, event: Handle, stream: Handle) -> None:
    machine.handles.get(event, Event).recorded_us = machine.clock_us


@entry("cuEventRecordWithFlags")
def event_record_with_flags(machine: Machine, event: Handle, stream: Handle, flags: Uint) -> None:
    event_record(machine, event, stream)


@entry("cuEventQuery")
def event_query(machine: Machine, event: Handle) -> None:
    machine.handles.get(event, Event)


@entry("cuEventElapsedTime")
def event_elapsed_time(machine: Machine, milliseconds: Pointer, begin: Handle, end: Handle) -> None:
    """Write the predicted time from one event to the other."""
    first, last = (machine.handles.get(one, Event).recorded_us for one in (begin, end))
    if first is None or last is None:
        raise DriverError(NOT_READY)
    put(milliseconds, ctypes.c_float, (last - first) / _US_A_MS)
