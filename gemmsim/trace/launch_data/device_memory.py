"""Models the global memory of a simulated GPU, an allocation for each array argument, and one for device globals."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.dtypes import DTYPES
from gemmsim.support.periodic_array import PERIOD_BYTES, PeriodicArray, forget_pages, sparse_zeros
from gemmsim.support.plurals import plural
from gemmsim.trace.types import Address, Argument

FIRST_ADDRESS = 0x7F00_0000_0000
# cudaMalloc aligns to 256 bytes at least (CUDA C++ Programming Guide, 5.3.2), and large allocations to 2 MiB pages.
PAGE_BYTES = 2 << 20
PIECE_SHIFT = 16
# Arrays are restored and searched for stores in pieces of this size, because blocks store to little of a large array.
_PIECE_BYTES = 1 << PIECE_SHIFT
FAR = "far from every argument"
_BEYOND = 256  # bytes behind each array that may be read


class DeviceMemory:
    """Holds the content of each array argument and of the device globals, and which of their bytes were stored to.

    A `PeriodicArray` is not copied until the kernel is about to store to it (`own`); until then it is read in place.

    pointers   device address of the first element of each argument's array, None for scalars
    hidden     {name: device address} of the arrays that the launch brings along besides its arguments
    written    bool, one for each byte: whether it was stored to; allocations begin at multiples of `_PIECE_BYTES`
    touched    bool, one for each piece of `written`: whether any byte of it was stored to
    starts     uint64, device address of each allocation
    sizes      uint64, bytes of each allocation
    positions  uint64, index in `written` of each allocation's first byte
    places     uint64, address of each allocation's content in this process
    lent       uint64, not 0 where an allocation's content is the argument's own array, which must not be written to:
               after how many bytes the content repeats
    """

    def __init__(
        self,
        args: tuple[Argument, ...],
        hidden: tuple[Argument, ...] = (),
        globals_at: Callable[[int], Argument] | None = None,
        globals_address: int | None = None,
    ) -> None:
        """Allocate one behind the other: the arguments' arrays, the device globals, and what is hidden.

        globals_at       makes the image of the module's device globals, u8 [bytes], for the address that it is told;
                         None where the module has none
        globals_address  of that image; None: behind the arguments' arrays
        """
        placed, behind = addresses_of(args)
        self.globals_address = behind if globals_address is None else globals_address
        if globals_at is not None:
            hidden = (replace(globals_at(self.globals_address), at=self.globals_address), *hidden)
        self._args, self._with_globals = (*args, *hidden), globals_at is not None
        self._arrays = [_array(a) for a in self._args]
        placed += addresses_of(hidden, max(behind, self.globals_address))[0]
        position = 0
        self.pointers: list[int | None] = []
        self._allocation: list[int] = []  # of each argument, of the device globals, and of what is hidden
        self._content: list[NDArray[np.uint8]] = []
        rows: list[tuple[int, ...]] = []
        for argument, array, address in zip(self._args, self._arrays, placed, strict=True):
            self._allocation.append(len(rows))
            if array is None:
                self.pointers.append(None)
                continue
            self.pointers.append(address + argument.offset_bytes)
            lent = isinstance(array, PeriodicArray) and array.remake is not None
            content = _bytes(array) if lent else _copied(array)
            self._content.append(content)
            rows.append((address, array.nbytes, position, content.ctypes.data, PERIOD_BYTES * lent))
            position += -(-array.nbytes // _PIECE_BYTES) * _PIECE_BYTES
        named = zip(self._args, self.pointers, strict=True)
        self.hidden = {one.name: at for one, at in list(named)[len(args) :] if one.name and at is not None}
        self.pointers = self.pointers[: len(args)]
        self._place_addresses()
        self.written = sparse_zeros(position + _BEYOND).view(np.bool_)
        self.touched = np.zeros((position >> PIECE_SHIFT) + 1, np.bool_)
        columns = np.array(rows or [(0,) * 5], np.uint64)
        self.starts, self.sizes, self.positions, self.places, self.lent = (columns[:, i].copy() for i in range(5))

    def _place_addresses(self) -> None:
        """Write the addresses of arrays to the places in other arrays that hold them."""
        for argument, array, allocation in zip(self._args, self._arrays, self._allocation, strict=True):
            if array is None or not argument.addresses:
                continue
            # The initial content holds them too, so that `restore` brings them back.
            for content in (_bytes(array), self._content[allocation]):
                place_addresses(content.data, argument.addresses, self.pointers)

    def set_hidden(self, name: str, content: NDArray[np.uint8]) -> None:
        """Give one of the `hidden` arrays the content, uint8 [bytes], that it has when the kernel starts."""
        number = max(i for i, one in enumerate(self._args) if one.name == name)  # behind all arguments
        array = self._arrays[number]
        assert array is not None
        _bytes(array)[:] = content
        self._content[self._allocation[number]][: len(content)] = content

    def own(self, allocation: int) -> None:
        """Replace the content of a lent allocation by a copy, because something is about to be stored to it."""
        number = next(i for i, a in enumerate(self._arrays) if a is not None and self._allocation[i] == allocation)
        array = self._arrays[number]
        assert isinstance(array, PeriodicArray) and array.remake is not None
        content = _bytes(array.remake())
        self._content[allocation] = content
        self.places[allocation], self.lent[allocation] = content.ctypes.data, 0

    def forget_reads(self) -> None:
        """Give back the pages of arrays that repeat, which are only read: a store goes to a copy (`own`)."""
        for array in self._arrays:
            if isinstance(array, PeriodicArray) and array.remake is not None:
                forget_pages(array)

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
            None if a is None else self._now(one, a, at)
            for one, a, at in zip(self._args, self._arrays, self._allocation, strict=True)
        )[: len(self.pointers)]

    def device_globals(self) -> NDArray[np.uint8]:
        """Return the image of the device globals as it is now, uint8 [bytes]; it is empty where there are none."""
        if not self._with_globals:
            return np.zeros(0, np.uint8)
        allocation = self._allocation[len(self.pointers)]
        return self._content[allocation][: int(self.sizes[allocation])]

    def globals_stored(self) -> NDArray[np.bool_]:
        """Return for each byte of the device globals whether it was stored to, bool [bytes]."""
        start = int(self.positions[self._allocation[len(self.pointers)]]) if self._with_globals else 0
        return self.written[start : start + len(self.device_globals())]

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes of content from `address` on, fewer where the allocation ends before; b"" outside."""
        for start, length, content in zip(self.starts.tolist(), self.sizes.tolist(), self._content, strict=False):
            if start <= address < start + length:
                return content[address - start : min(address - start + size, length)].tobytes()
        return b""

    def _now(self, argument: Argument, array: NDArray, allocation: int) -> NDArray:
        content = self._content[allocation][: array.nbytes]
        if argument.plain:
            return content.view(array.dtype).reshape(array.shape)
        dtype = DTYPES[argument.dtype].numpy_name
        return np.ndarray(argument.shape, dtype, content, argument.offset_bytes, argument.strides)

    def stored(self) -> tuple[NDArray[np.bool_] | None, ...]:
        """Return for each argument a bool array of its shape, True where all bytes of the element were stored to."""
        return tuple(
            None if a is None else self._stored(a, at) if one.plain else self._stored_apart(one, at)
            for one, a, at in zip(self._args, self._arrays, self._allocation, strict=True)
        )[: len(self.pointers)]

    def _stored_apart(self, argument: Argument, allocation: int) -> NDArray[np.bool_]:
        at, item = int(self.positions[allocation]), DTYPES[argument.dtype].item_bytes
        shape, strides = (*argument.shape, item), (*argument.strides, 1)
        marks: NDArray[np.bool_] = np.ndarray(shape, np.bool_, self.written, at + argument.offset_bytes, strides)
        return np.asarray(marks.all(axis=-1))

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

    def initial_words(self, addresses: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the words of the arguments' initial content at these addresses, which must lie inside of them."""
        allocation = np.searchsorted(self.starts.astype(np.int64), addresses, side="right") - 1
        found = np.zeros(addresses.shape, np.uint32)
        initial = {at: _bytes(a) for a, at in zip(self._arrays, self._allocation, strict=True) if a is not None}
        for number in np.unique(allocation).tolist():
            here = allocation == number
            offset = addresses[here] - int(self.starts[number])
            for byte in range(4):
                found[here] |= initial[number][offset + byte].astype(np.uint32) << np.uint32(8 * byte)
        return found

    def owner(self, address: int) -> str:
        """Say, for a message, behind which argument an address lies and how far."""
        given = zip(self._args, self.pointers, strict=False)  # what is hidden has no name
        names = [f"argument {one.name or i}" for i, (one, p) in enumerate(given) if p is not None]
        for name, start, size in zip(names, self.starts.tolist(), self.sizes.tolist(), strict=False):
            if start <= address < start + size + PAGE_BYTES:
                past = plural(address - start - size + 1, "byte")
                return f"{past} past the last byte of {name} ({plural(size, 'byte')})"
        return FAR


def addresses_of(args: Iterable[Argument], begin: int = FIRST_ADDRESS) -> tuple[list[int], int]:
    """Return the device address of each argument's memory, of which scalars have none, and the first one behind all.

    begin  where the first array lies that does not say where
    """
    placed: list[int] = []
    for one in args:
        at = begin if one.at is None else one.at
        placed.append(at)
        begin = max(begin, at + reach_bytes(one.memory_bytes)) if one.shape else begin
    return placed, begin


def reach_bytes(size_bytes: int) -> int:
    """Return how far behind an allocation of `size_bytes` the next one begins: after its last page one page is left."""
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES


def place_addresses(content: bytearray | memoryview, places: Iterable[Address], pointers: Sequence[int | None]) -> None:
    """Write device addresses into `content`, 8 bytes each.

    pointers  device address of each argument's array, None for scalars
    """
    for place in places:
        pointer = pointers[place.array]
        assert pointer is not None, "an address names a scalar"
        struct.pack_into("<Q", content, place.at_byte, pointer + place.plus_bytes)


def _array(argument: Argument) -> NDArray | None:
    """Return the initial content of an argument's memory; None for a scalar.

    Bytes of a pitched array that belong to no element are 0xFF, which is NaN in every float type. A kernel that
    computes with them therefore gives itself away.
    """
    if not argument.shape:
        return None
    if argument.plain:
        return argument.value if isinstance(argument.value, PeriodicArray) else np.ascontiguousarray(argument.value)
    memory = np.full(argument.memory_bytes, 0xFF, np.uint8)
    dtype = DTYPES[argument.dtype].numpy_name
    placed: NDArray = np.ndarray(argument.shape, dtype, memory, argument.offset_bytes, argument.strides)
    placed[...] = np.asarray(argument.value)
    return memory


def _bytes(array: NDArray) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _copied(array: NDArray) -> NDArray[np.uint8]:
    """Copy the array's bytes to memory of their own, with `_BEYOND` zeros behind them."""
    content = np.empty(array.nbytes + _BEYOND, np.uint8)
    content[: array.nbytes] = _bytes(array)
    content[array.nbytes :] = 0
    return content
