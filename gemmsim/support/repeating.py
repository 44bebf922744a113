"""Large arrays whose content repeats, and which take memory only where they are touched.

What the elements of a large matrix are does not matter to a prediction, as long as they differ. Such an array is a
short run of elements, mapped again and again: it costs no time to fill, pages that nobody reads do not exist, and one
that is written to becomes a page of its own. Where the system cannot do that (Linux can) the run is copied as often as
it takes.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A prime number of pages: no tile of a matrix begins at the same element of the run as its neighbour.
RUN_BYTES = 1021 * mmap.PAGESIZE
_FIXED, _NO_RESERVE = 0x10, 0x4000  # MAP_FIXED, MAP_NORESERVE of Linux
_FAILED = ctypes.c_void_p(-1).value


class Repeating(np.ndarray[Any, Any]):
    """again: makes another array of the same content; None for what was not made by `repeating`: views, copies, and
    arrays that are plain memory. Bytes up to the end of the page, and the page behind it, may be read."""

    again: Callable[[], Repeating] | None = None


def repeating(run: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of `shape` with the elements of `run` (one dimension, RUN_BYTES), again and again, in the order of C."""
    if run.nbytes != RUN_BYTES:
        raise ValueError(f"a run takes {RUN_BYTES} bytes, not {run.nbytes}")
    if sys.platform != "linux" or not hasattr(os, "memfd_create"):
        return np.resize(run, shape)
    return _mapped(_File(run), run.dtype, shape)


class _File:
    """An anonymous file that holds a run as long as an array may want it again."""

    def __init__(self, run: NDArray[Any]) -> None:
        self.number = os.memfd_create("gemmsim")
        weakref.finalize(self, os.close, self.number)
        os.truncate(self.number, run.nbytes)
        with mmap.mmap(self.number, run.nbytes) as there:
            there[:] = run.tobytes()


class _Region:
    """Addresses that are given back with the last array on them."""

    def __init__(self, address: int, size: int, length: int) -> None:
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}
        weakref.finalize(self, _libc().munmap, address, length)


def _mapped(file: _File, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Repeating:
    size = math.prod(shape) * dtype.itemsize
    length = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE + mmap.PAGESIZE
    private = mmap.MAP_PRIVATE | _NO_RESERVE
    start = _map(None, length, private | mmap.MAP_ANONYMOUS, -1)
    region = _Region(start, size, length)
    for offset in range(0, size, RUN_BYTES):
        count = min(RUN_BYTES, length - mmap.PAGESIZE - offset)
        _map(start + offset, count, private | _FIXED, file.number)
    array = np.asarray(region).view(dtype).reshape(shape).view(Repeating)
    array.again = lambda: _mapped(file, dtype, shape)
    return array


def _map(address: int | None, length: int, flags: int, file: int) -> int:
    found = _libc().mmap(address, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
    if found == _FAILED:
        number = ctypes.get_errno()
        raise MemoryError(f"cannot map {length} bytes: {os.strerror(number)}")
    return int(found)


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc
