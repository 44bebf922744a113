"""Functions of the driver API that allocate, copy and set memory. Copies are done when they return."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from gemmsim.programs.allocations import Allocation, host_bytes
from gemmsim.programs.c_calls import (
    INVALID_VALUE,
    Address,
    DriverError,
    Handle,
    Int,
    Pointer,
    Size,
    Uchar,
    Uint,
    Ushort,
    entry,
    put,
    put_int,
    put_word,
)
from gemmsim.programs.machine import Machine

_DEVICE, _HOST = 2, 1  # CUmemorytype
_CONTEXT, _MEMORY_TYPE, _DEVICE_POINTER, _HOST_POINTER = 1, 2, 3, 4  # CUpointer_attribute
_BUFFER_ID, _IS_MANAGED, _ORDINAL, _RANGE_START, _RANGE_SIZE, _MAPPED = 7, 8, 9, 11, 12, 13


@entry("cuMemAlloc")
def mem_alloc(machine: Machine, address: Pointer, size: Size) -> None:
    put_word(address, machine.memory.allocate(size).address)


@entry("cuMemAllocAsync")
def mem_alloc_async(machine: Machine, address: Pointer, size: Size, stream: Handle) -> None:
    mem_alloc(machine, address, size)


@entry("cuMemAllocManaged")
def mem_alloc_managed(machine: Machine, address: Pointer, size: Size, flags: Uint) -> None:
    put_word(address, machine.memory.allocate_shared(size).address)


@entry("cuMemHostAlloc")
def mem_host_alloc(machine: Machine, pointer: Pointer, size: Size, flags: Uint) -> None:
    put_word(pointer, machine.memory.allocate_shared(size).address)


@entry("cuMemAllocHost")
def mem_alloc_host(machine: Machine, pointer: Pointer, size: Size) -> None:
    put_word(pointer, machine.memory.allocate_shared(size).address)


@entry("cuMemFree", "cuMemFreeHost")
def mem_free(machine: Machine, address: Address) -> None:
    if address:
        machine.memory.free(address)


@entry("cuMemFreeAsync")
def mem_free_async(machine: Machine, address: Address, stream: Handle) -> None:
    mem_free(machine, address)


@entry("cuMemHostRegister")
def mem_host_register(machine: Machine, host: Pointer, size: Size, flags: Uint) -> None:
    machine.memory.register(host, size)


@entry("cuMemHostUnregister")
def mem_host_unregister(machine: Machine, host: Pointer) -> None:
    found = machine.memory.registered(host)
    if found is None:
        raise DriverError(INVALID_VALUE)
    machine.memory.free(found.address)


@entry("cuMemHostGetDevicePointer")
def mem_host_get_device_pointer(machine: Machine, address: Pointer, host: Pointer, flags: Uint) -> None:
    found = machine.memory.registered(host)
    if found is None and machine.memory.find(host) is None:
        raise DriverError(INVALID_VALUE)
    put_word(address, host if found is None else found.address)


@entry("cuMemGetInfo")
def mem_get_info(machine: Machine, free: Pointer, total: Pointer) -> None:
    put_word(free, machine.memory.limit_bytes - machine.memory.used_bytes)
    put_word(total, machine.memory.limit_bytes)


@entry("cuMemGetAddressRange")
def mem_get_address_range(machine: Machine, start: Pointer, size: Pointer, address: Address) -> None:
    found = _found(machine, address)
    put_word(start, found.address)
    put_word(size, found.size)


@entry("cuPointerGetAttribute")
def pointer_get_attribute(machine: Machine, value: Pointer, attribute: Int, address: Address) -> None:
    one = _found(machine, address)
    words = {
        _CONTEXT: machine.primary_context,
        _DEVICE_POINTER: address,
        _HOST_POINTER: address,
        _BUFFER_ID: one.address,
        _RANGE_START: one.address,
        _RANGE_SIZE: one.size,
    }
    numbers = {_MEMORY_TYPE: _HOST if one.on_host else _DEVICE, _ORDINAL: 0}
    if attribute in words and (attribute != _HOST_POINTER or one.on_host):
        put_word(value, words[attribute])
    elif attribute in numbers:
        put_int(value, numbers[attribute])
    elif attribute in (_IS_MANAGED, _MAPPED):
        put(value, ctypes.c_ubyte, int(attribute == _MAPPED))
    else:
        raise DriverError(INVALID_VALUE)


@entry("cuPointerGetAttributes")
def pointer_get_attributes(
    machine: Machine, count: Uint, attributes: Pointer, values: Pointer, address: Address
) -> None:
    """Write several attributes; those that the pointer does not have are 0."""
    for number in range(count):
        attribute = ctypes.c_int.from_address(attributes + 4 * number).value
        place = ctypes.c_uint64.from_address(values + 8 * number).value
        try:
            pointer_get_attribute(machine, place, attribute, address)
        except DriverError:
            whole = (_CONTEXT, _DEVICE_POINTER, _HOST_POINTER, _BUFFER_ID, _RANGE_START, _RANGE_SIZE)
            wide = ctypes.c_uint64 if attribute in whole else ctypes.c_ubyte
            put(place, wide if attribute not in (_MEMORY_TYPE, _ORDINAL) else ctypes.c_int, 0)


@entry("cuMemPrefetchAsync", "cuMemAdvise")
def mem_prefetch_async(machine: Machine, address: Address, size: Size) -> None:
    """Ignore the wish, as managed memory counts as memory of the GPU. Other parameters follow that C passes."""
    machine.memory.bytes_at(address, size)


@entry("cuMemcpyHtoD")
def copy_to_device(machine: Machine, to: Address, host: Pointer, size: Size) -> None:
    one, content = machine.memory.bytes_at(to, size)
    machine.postponed.before_write((one,))
    content[:] = host_bytes(host, size)
    if size == one.size:
        one.incomplete = ""


@entry("cuMemcpyHtoDAsync")
def copy_to_device_async(machine: Machine, to: Address, host: Pointer, size: Size, stream: Handle) -> None:
    copy_to_device(machine, to, host, size)


@entry("cuMemcpyDtoH")
def copy_to_host(machine: Machine, host: Pointer, of: Address, size: Size) -> None:
    one, content = machine.memory.bytes_at(of, size)
    machine.postponed.before_read((one,))
    one.warn()
    host_bytes(host, size)[:] = content


@entry("cuMemcpyDtoHAsync")
def copy_to_host_async(machine: Machine, host: Pointer, of: Address, size: Size, stream: Handle) -> None:
    copy_to_host(machine, host, of, size)


@entry("cuMemcpy", "cuMemcpyDtoD")
def copy(machine: Machine, to: Address, of: Address, size: Size) -> None:
    """Copy from anywhere to anywhere: an address that is not of the device is one of the host."""
    known = machine.memory.find(of)
    there = machine.memory.find(to)
    machine.postponed.before_read(() if known is None else (known,))
    machine.postponed.before_write(() if there is None else (there,))
    source = _anywhere(machine, of, size)
    _anywhere(machine, to, size)[:] = source.copy()
    if known is not None and there is not None and known.incomplete:
        there.incomplete = known.incomplete
    elif known is not None and there is None:
        known.warn()


@entry("cuMemcpyAsync", "cuMemcpyDtoDAsync")
def copy_async(machine: Machine, to: Address, of: Address, size: Size, stream: Handle) -> None:
    copy(machine, to, of, size)


@entry("cuMemsetD8")
def set_bytes(machine: Machine, to: Address, value: Uchar, count: Size) -> None:
    _set(machine, to, np.uint8(value), count)


@entry("cuMemsetD8Async")
def set_bytes_async(machine: Machine, to: Address, value: Uchar, count: Size, stream: Handle) -> None:
    _set(machine, to, np.uint8(value), count)


@entry("cuMemsetD16")
def set_halves(machine: Machine, to: Address, value: Ushort, count: Size) -> None:
    _set(machine, to, np.uint16(value), count)


@entry("cuMemsetD16Async")
def set_halves_async(machine: Machine, to: Address, value: Ushort, count: Size, stream: Handle) -> None:
    _set(machine, to, np.uint16(value), count)


@entry("cuMemsetD32")
def set_words(machine: Machine, to: Address, value: Uint, count: Size) -> None:
    _set(machine, to, np.uint32(value), count)


@entry("cuMemsetD32Async")
def set_words_async(machine: Machine, to: Address, value: Uint, count: Size, stream: Handle) -> None:
    _set(machine, to, np.uint32(value), count)


def _set(machine: Machine, to: int, value: np.generic, count: int) -> None:
    one, content = machine.memory.bytes_at(to, count * value.itemsize)
    machine.postponed.before_write((one,))
    content.view(value.dtype)[:] = value
    if len(content) == one.size:
        one.incomplete = ""


def _found(machine: Machine, address: int) -> Allocation:
    found = machine.memory.find(address)
    if found is None:
        raise DriverError(INVALID_VALUE)
    return found


def _anywhere(machine: Machine, address: int, size: int) -> NDArray[np.uint8]:
    if machine.memory.find(address) is None:
        return host_bytes(address, size)
    return machine.memory.bytes_at(address, size)[1]
