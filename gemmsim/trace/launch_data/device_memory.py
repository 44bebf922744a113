"""Models the global memory of a simulated GPU, with one allocation for each array argument."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.periodic_array import PeriodicArray
from gemmsim.trace.types import Argument

FIRST_ADDRESS = 0x7F00_0000_0000
# cudaMalloc aligns to 256 bytes at least (CUDA C++ Programming Guide, 5.3.2), and large allocations to 2 MiB pages.
PAGE_BYTES = 2 << 20
PIECE_SHIFT = 16
# Arrays are restored and searched for stores in pieces of this size, because blocks store to little of a large array.
_PIECE_BYTES = 1 << PIECE_SHIFT
_BEYOND = 256  # bytes behind each array that may be read


class DeviceMemory:
    """Holds the content of each array argument, and for each of its bytes whether it was stored to.

    A `PeriodicArray` is not copied until the kernel is about to store to it (`own`); until then it is read in place.

    pointers   device address of each argument's array, None for scalars
    written    bool, one for each byte: whether it was stored to; allocations begin at multiples of `_PIECE_BYTES`
    touched    bool, one for each piece of `written`: whether any byte of it was stored to
    starts     uint64, device address of each allocation
    sizes      uint64, bytes of each allocation
    positions  uint64, index in `written` of each allocation's first byte
    places     uint64, address of each allocation's content in this process
    lent       uint64, 1 where an allocation's content is the argument's own array, which must not be written to
    """

    def __init__(self, args: tuple[Argument, ...]) -> None:
        self._arrays = [_array(a) for a in args]
        address, position = FIRST_ADDRESS, 0
        self.pointers: list[int | None] = []
        self._allocation: list[int] = []  # of each argument
        self._content: list[NDArray[np.uint8]] = []
        rows: list[tuple[int, ...]] = []
        for array in self._arrays:
            self._allocation.append(len(rows))
            if array is None:
                self.pointers.append(None)
                continue
            self.pointers.append(address)
            lent = isinstance(array, PeriodicArray) and array.remake is not None
            content = _bytes(array) if lent else _copied(array)
            self._content.append(content)
            rows.append((address, array.nbytes, position, content.ctypes.data, int(lent)))
            address += -(-array.nbytes // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES
            position += -(-array.nbytes // _PIECE_BYTES) * _PIECE_BYTES
        self.written = np.zeros(position + _BEYOND, np.bool_)
        self.touched = np.zeros((position >> PIECE_SHIFT) + 1, np.bool_)
        columns = np.array(rows or [(0,) * 5], np.uint64)
        self.starts, self.sizes, self.positions, self.places, self.lent = (columns[:, i].copy() for i in range(5))

    def own(self, allocation: int) -> None:
        """Replace the content of a lent allocation by a copy, because something is about to be stored to it."""
        number = next(i for i, a in enumerate(self._arrays) if a is not None and self._allocation[i] == allocation)
        array = self._arrays[number]
        assert isinstance(array, PeriodicArray) and array.remake is not None
        content = _bytes(array.remake())
        self._content[allocation] = content
        self.places[allocation], self.lent[allocation] = content.ctypes.data, 0

    def restore(self) -> None:
        """Restore the arguments' initial content, and mark every byte as not stored to."""
        if not self.touched.any():
            return
        for array, allocation in zip(self._arrays, self._allocation, strict=True):
            if array is None:
                continue
            initial, content, at = _bytes(array), self._content[allocation], int(self.positions[allocation])
            for piece in self._touched(array, allocation):
                content[piece] = initial[piece]
                self.written[at + piece.start : at + piece.stop] = False
        self.touched[:] = False

    def arrays(self) -> tuple[NDArray | None, ...]:
        """Return for each argument its array as it is now, in its dtype and shape; None for scalars."""
        return tuple(
            None if a is None else self._content[at][: a.nbytes].view(a.dtype).reshape(a.shape)
            for a, at in zip(self._arrays, self._allocation, strict=True)
        )

    def stored(self) -> tuple[NDArray[np.bool_] | None, ...]:
        """Return for each argument a bool array of its shape, True where all bytes of the element were stored to."""
        return tuple(
            None if a is None else self._stored(a, at) for a, at in zip(self._arrays, self._allocation, strict=True)
        )

    def _touched(self, array: NDArray, allocation: int) -> Iterator[slice]:
        """Yield the byte range of each piece (`_PIECE_BYTES`) of an array in which any byte was stored to."""
        first = int(self.positions[allocation]) >> PIECE_SHIFT
        pieces = self.touched[first : first - (-array.nbytes // _PIECE_BYTES)]
        for number in np.flatnonzero(pieces).tolist():
            yield slice(number * _PIECE_BYTES, min((number + 1) * _PIECE_BYTES, array.nbytes))

    def _stored(self, array: NDArray, allocation: int) -> NDArray[np.bool_]:
        stored, at = np.zeros(array.size, np.bool_), int(self.positions[allocation])
        for piece in self._touched(array, allocation):  # pieces hold whole elements
            written = self.written[at + piece.start : at + piece.stop]
            elements = stored[piece.start // array.itemsize : piece.stop // array.itemsize]
            elements[:] = written[:: array.itemsize]
            for byte in range(1, array.itemsize):
                elements &= written[byte :: array.itemsize]
        return stored.reshape(array.shape)

    def owner(self, address: int) -> str:
        """Say, for a message, behind which argument an address lies and how far."""
        names = [f"argument {i}" for i, p in enumerate(self.pointers) if p is not None]
        for name, start, size in zip(names, self.starts.tolist(), self.sizes.tolist(), strict=False):
            if start <= address < start + size + PAGE_BYTES:
                return f"{address - start - size + 1} bytes past the last byte of {name} ({size} bytes)"
        return "far from every argument"


def _array(argument: Argument) -> NDArray | None:
    if not argument.shape:
        return None
    return argument.value if isinstance(argument.value, PeriodicArray) else np.ascontiguousarray(argument.value)


def _bytes(array: NDArray) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _copied(array: NDArray) -> NDArray[np.uint8]:
    """Copy the array's bytes to memory of their own, with `_BEYOND` zeros behind them."""
    content = np.empty(array.nbytes + _BEYOND, np.uint8)
    content[: array.nbytes] = _bytes(array)
    content[array.nbytes :] = 0
    return content
