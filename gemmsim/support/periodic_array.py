"""Makes large arrays whose content repeats, and which take memory only where they are touched.

A prediction does not depend on the values in a large matrix, as long as they differ from one another. Such a matrix is
therefore one period of elements that is mapped into memory again and again. It costs no time to fill. A page that is
never read takes no memory, and a page that is written to becomes a copy of its own. The mapping needs Linux; elsewhere
the period is copied until the array is full.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The number of pages is prime, so that neighbouring tiles of a matrix begin at different elements of the period.
PERIOD_BYTES = 1021 * mmap.PAGESIZE
MAPPED = sys.platform == "linux" and hasattr(os, "memfd_create")  # whether an array takes memory only where touched
_FIXED, _NO_RESERVE = 0x10, 0x4000  # MAP_FIXED, MAP_NORESERVE of Linux
_FAILED = ctypes.c_void_p(-1).value


class PeriodicArray(np.ndarray[Any, Any]):
    """An array whose content `periodic_array` has mapped into memory.

    `remake` makes another array with the content that this array had at first. It is None in views, in copies and in
    arrays of plain memory. Beyond the end of the array, the rest of its last page and the page after it may be read.
    """

    remake: Callable[[], PeriodicArray] | None = None


def periodic_array(period: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Make an array of `shape`, in C order, that repeats the elements of `period` (one dimension, PERIOD_BYTES long).

    Raises ValueError for a period of another length.
    """
    if period.nbytes != PERIOD_BYTES:
        raise ValueError(f"a period takes {PERIOD_BYTES} bytes, not {period.nbytes}")
    if not MAPPED:
        return np.resize(period, shape)
    return _mapped(_File(period), period.dtype, shape)


def sparse_zeros(size: int) -> NDArray[np.uint8]:
    """Make `size` bytes that are 0, of which only pages that are written to take memory.

    The system does not count how much there may be in the end, so that more than this machine's memory can be had. That
    needs Linux; elsewhere the system decides.
    """
    if sys.platform != "linux":
        return np.zeros(size, np.uint8)
    length = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    start = _map(None, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE, -1)
    return np.asarray(_Region(start, size, length))


def forget_pages(array: PeriodicArray) -> None:
    """Give back the pages of an array to which nothing was written since it was made.

    They are pages of one period, mapped again and again, but the system counts each of them as this process's memory. A
    page is mapped again when it is read again.
    """
    _libc().madvise(array.ctypes.data, array.nbytes, mmap.MADV_DONTNEED)


def elements(array: NDArray[Any], view: NDArray[Any], part: tuple[Any, ...]) -> NDArray[Any]:
    """Return `view[part]`, where `view` is a matrix of all elements of `array`: itself, reshaped or transposed.

    Of a periodic array no more than the pages of one period are touched.
    """
    if not isinstance(array, PeriodicArray) or array.remake is None:
        return view[part]
    period = PERIOD_BYTES // array.itemsize
    rows, columns = (
        np.arange(length)[one] * (stride // array.itemsize) % period
        for length, stride, one in zip(view.shape, view.strides, part, strict=True)
    )
    places = rows[:, None] + columns
    np.subtract(places, period, out=places, where=places >= period)  # far quicker than to divide each
    return np.asarray(array.reshape(-1)[places])


class _File:
    """An anonymous file that holds a period for as long as an array made from it may be remade."""

    def __init__(self, period: NDArray[Any]) -> None:
        self.number = os.memfd_create("gemmsim")
        weakref.finalize(self, os.close, self.number)
        os.truncate(self.number, period.nbytes)
        with mmap.mmap(self.number, period.nbytes) as content:
            content[:] = period.tobytes()


class _Region:
    """A range of addresses that is unmapped when the last array in it is gone."""

    def __init__(self, address: int, size: int, length: int) -> None:
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}
        weakref.finalize(self, _libc().munmap, address, length)


def _mapped(file: _File, dtype: np.dtype[Any], shape: tuple[int, ...]) -> PeriodicArray:
    size = math.prod(shape) * dtype.itemsize
    length = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE + mmap.PAGESIZE
    private = mmap.MAP_PRIVATE | _NO_RESERVE
    start = _map(None, length, private | mmap.MAP_ANONYMOUS, -1)
    region = _Region(start, size, length)
    for offset in range(0, size, PERIOD_BYTES):
        count = min(PERIOD_BYTES, length - mmap.PAGESIZE - offset)
        _map(start + offset, count, private | _FIXED, file.number)
    array = np.asarray(region).view(dtype).reshape(shape).view(PeriodicArray)
    array.remake = lambda: _mapped(file, dtype, shape)
    return array


def _map(address: int | None, length: int, flags: int, file: int) -> int:
    found = _libc().mmap(address, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
    if found == _FAILED:
        number = ctypes.get_errno()
        raise MemoryError(f"cannot map {length} bytes: {os.strerror(number)}")
    return int(found)


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return libc
