"""Global memory of the simulated device: one flat buffer, and the table of what lies where."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace.types import Argument

FIRST_ADDRESS = 0x7F00_0000_0000
# cudaMalloc aligns to 256 bytes at least (CUDA C++ Programming Guide, 5.3.2), and large allocations to 2 MiB pages.
PAGE_BYTES = 2 << 20
_PADDING = 16
_PIECE_BYTES = 1 << 16  # what is looked at and restored at once: most blocks store to little of a large array


class DeviceMemory:
    """Holds a copy of each array argument (two to the byte: content, and whether it was stored to).

    pointers   device address of each argument's array, None for scalars
    bytes      uint8, the content
    written    bool, one a byte: stored to since the start
    table      (start address, size, position) of each allocation, three uint64 arrays
    """

    def __init__(self, args: tuple[Argument, ...]) -> None:
        self._arrays = [np.ascontiguousarray(a.value) if a.shape else None for a in args]
        address, position = FIRST_ADDRESS, 0
        self.pointers: list[int | None] = []
        self._positions: list[int] = []
        rows: list[tuple[int, int, int]] = []
        for array in self._arrays:
            if array is None:
                self.pointers.append(None)
                self._positions.append(0)
                continue
            self.pointers.append(address)
            self._positions.append(position)
            rows.append((address, array.nbytes, position))
            address += -(-array.nbytes // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES
            position += -(-array.nbytes // 256) * 256 + _PADDING * 16
        self.bytes = np.zeros(position + 256, np.uint8)
        self.written = np.zeros(position + 256, np.bool_)
        for number in range(len(self._arrays)):
            self._fill(number)
        columns = np.array(rows or [(0, 0, 0)], np.uint64)
        self.table = tuple(np.ascontiguousarray(columns[:, i]) for i in range(3))

    def _fill(self, number: int) -> None:
        array, at = self._arrays[number], self._positions[number]
        if array is not None:
            self.bytes[at : at + array.nbytes] = array.reshape(-1).view(np.uint8)

    def restore(self) -> None:
        """Back to the arguments' initial content, nothing written."""
        for array, at in zip(self._arrays, self._positions, strict=True):
            if array is None:
                continue
            content = array.reshape(-1).view(np.uint8)
            for piece in self._touched(array, at):
                self.bytes[at + piece.start : at + piece.stop] = content[piece]
                self.written[at + piece.start : at + piece.stop] = False

    def arrays(self) -> tuple[NDArray | None, ...]:
        """The arrays as they are now, in the arguments' dtypes and shapes."""
        return tuple(
            None if a is None else self.bytes[at : at + a.nbytes].view(a.dtype).reshape(a.shape)
            for a, at in zip(self._arrays, self._positions, strict=True)
        )

    def stored(self) -> tuple[NDArray[np.bool_] | None, ...]:
        """Which elements the kernel stored to (all bytes of them)."""
        return tuple(
            None if a is None else self._stored(a, at) for a, at in zip(self._arrays, self._positions, strict=True)
        )

    def _touched(self, array: NDArray, at: int) -> Iterator[slice]:
        """The pieces of an array, in bytes, that hold something stored."""
        words = self.written[at : at - (-array.nbytes // 8) * 8].view(np.uint64)  # positions leave room beyond the end
        touched = np.bitwise_or.reduceat(words, np.arange(0, len(words), _PIECE_BYTES // 8))
        for number in np.flatnonzero(touched).tolist():
            yield slice(number * _PIECE_BYTES, min((number + 1) * _PIECE_BYTES, array.nbytes))

    def _stored(self, array: NDArray, at: int) -> NDArray[np.bool_]:
        stored = np.zeros(array.size, np.bool_)
        for piece in self._touched(array, at):  # pieces hold whole elements
            written = self.written[at + piece.start : at + piece.stop]
            elements = stored[piece.start // array.itemsize : piece.stop // array.itemsize]
            elements[:] = written[:: array.itemsize]
            for byte in range(1, array.itemsize):
                elements &= written[byte :: array.itemsize]
        return stored.reshape(array.shape)

    def owner(self, address: int) -> str:
        """What lies nearest to an address, for messages."""
        names = [f"argument {i}" for i, p in enumerate(self.pointers) if p is not None]
        for name, (start, size) in zip(names, zip(*(c.tolist() for c in self.table[:2]), strict=True), strict=False):
            if start <= address < start + size + PAGE_BYTES:
                return f"{address - start - size + 1} bytes past the last byte of {name} ({size} bytes)"
        return "far from every argument"
