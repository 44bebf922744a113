"""The memory of a program, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.programs.allocations import Allocations, argument_of
from gemmsim.programs.c_calls import DriverError
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS, PAGE_BYTES, DeviceMemory


def test_addresses_lie_apart_and_are_used_again() -> None:
    memory = Allocations(10 * PAGE_BYTES)
    first, second = memory.allocate(100), memory.allocate(PAGE_BYTES + 1)
    assert (first.address, second.address) == (FIRST_ADDRESS, FIRST_ADDRESS + 2 * PAGE_BYTES)
    assert (first.content == 0xFF).all()  # NaN: new memory holds nothing that a program may rely on
    memory.free(first.address)
    assert memory.allocate(50).address == FIRST_ADDRESS
    assert memory.used_bytes == 50 + PAGE_BYTES + 1
    with pytest.raises(DriverError):
        memory.allocate(9 * PAGE_BYTES)
    with pytest.raises(DriverError):
        memory.free(FIRST_ADDRESS + 8)


def test_bytes_end_with_their_allocation() -> None:
    memory = Allocations(PAGE_BYTES)
    one = memory.allocate(16)
    assert memory.bytes_at(one.address + 4, 12)[1].size == 12
    with pytest.raises(DriverError):
        memory.bytes_at(one.address + 4, 13)


def test_what_a_kernel_reaches_is_found_through_memory() -> None:
    memory = Allocations(PAGE_BYTES)
    table, row, other = (memory.allocate(64) for _ in range(3))
    table.content[8:16] = np.frombuffer(np.uint64(row.address + 63).tobytes(), np.uint8)
    given = np.uint64([7, table.address]).tobytes()
    assert memory.reachable([given]) == [table, row]
    assert memory.reachable([b"\0" * 4]) == []
    assert memory.reachable([np.uint64([other.address + 64]).tobytes()]) == []


def test_an_address_in_the_code_is_found_by_its_upper_half() -> None:
    memory = Allocations(PAGE_BYTES)
    row, table = memory.allocate(64), memory.allocate(64)
    table.content[8:16] = np.frombuffer(np.uint64(row.address).tobytes(), np.uint8)
    assert memory.reachable([], {7, 0x7F01}) == []
    assert memory.reachable([], {FIRST_ADDRESS >> 32}) == [row, table]


def test_host_memory_has_one_address() -> None:
    memory = Allocations(PAGE_BYTES)
    shared = memory.allocate_shared(4096)
    assert shared.content.ctypes.data == shared.address >= FIRST_ADDRESS
    host = np.arange(8, dtype=np.uint8)
    registered = memory.register(host.ctypes.data, 8)
    host[3] = 99
    assert registered.content[3] == 99 and registered.address != host.ctypes.data
    assert memory.registered(host.ctypes.data) is registered
    memory.free(registered.address)
    memory.free(shared.address)
    assert memory.used_bytes == 0


def test_a_launch_finds_allocations_at_their_addresses() -> None:
    memory = Allocations(PAGE_BYTES)
    memory.allocate(8)
    second = memory.allocate(8)
    placed = DeviceMemory((argument_of(second),), globals_address=FIRST_ADDRESS + 40 * PAGE_BYTES)
    assert placed.pointers == [second.address]
    assert placed.starts.tolist() == [second.address]
    assert placed.globals_address == FIRST_ADDRESS + 40 * PAGE_BYTES
