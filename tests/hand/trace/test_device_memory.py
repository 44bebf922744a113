"""Device memory: restored and looked through piece by piece, it is what a plain copy of everything would be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.types import Argument

PIECE = 1 << 16


def memory_of(*arrays: np.ndarray) -> DeviceMemory:
    names = {"float32": "f32", "float16": "f16", "float64": "f64", "int8": "i8"}
    return DeviceMemory(tuple(Argument(names[a.dtype.name], a.shape, a) for a in arrays))


def place(memory: DeviceMemory, number: int) -> int:
    """Where the marks of array `number` begin."""
    return int(memory.positions[number])


def store(memory: DeviceMemory, number: int, first_byte: int, count: int) -> None:
    """As a kernel does."""
    at = place(memory, number) + first_byte
    content(memory, number)[first_byte : first_byte + count] ^= 0xFF
    memory.written[at : at + count] = True
    memory.touched[at // PIECE : (at + count - 1) // PIECE + 1] = True


def content(memory: DeviceMemory, number: int) -> np.ndarray:
    array = memory.arrays()[number]
    assert array is not None
    return array.reshape(-1).view(np.uint8)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_restored_and_stored(dtype: type[np.generic], data: st.DataObject) -> None:
    item = np.dtype(dtype).itemsize
    sizes = [data.draw(st.sampled_from([1, 5, PIECE // item - 1, PIECE // item, PIECE // item + 3, 3 * PIECE // item]))
             for _ in range(2)]  # fmt: skip
    arrays = [(np.arange(size) % 100).astype(dtype) for size in sizes]
    memory = memory_of(*arrays)
    marks = [np.zeros(array.nbytes, bool) for array in arrays]
    for _ in range(data.draw(st.integers(0, 4))):
        number = data.draw(st.integers(0, 1))
        first = data.draw(st.integers(0, arrays[number].nbytes - 1))
        count = data.draw(st.integers(1, min(40, arrays[number].nbytes - first)))
        store(memory, number, first, count)
        marks[number][first : first + count] = True
    for stored, mark in zip(memory.stored(), marks, strict=True):
        assert stored is not None
        assert stored.tolist() == mark.reshape(-1, item).all(axis=1).tolist()
    memory.restore()
    assert not memory.written.any()
    for now, before in zip(memory.arrays(), arrays, strict=True):
        assert now is not None and np.array_equal(now, before)


def test_restoring_touches_only_the_pieces_stored_to() -> None:
    """What was changed behind its back elsewhere stays: restoring a large array for each block tried costs too much."""
    memory = memory_of(np.zeros((3 * PIECE) // 4, np.float32))
    store(memory, 0, PIECE + 8, 4)
    content(memory, 0)[0] = 7  # not marked as stored to, in another piece
    memory.restore()
    assert content(memory, 0)[0] == 7 and content(memory, 0)[PIECE + 8] == 0
