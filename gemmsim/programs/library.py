"""Loads the simulated driver into this process as libcuda.so.1, so that packages that open the driver find it.

The loader takes a library that is loaded already for any that has its name (its soname). Functions that are not
simulated are there too: they return CUDA_ERROR_NOT_SUPPORTED, and `Machine.refused` remembers their names.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gemmsim.programs.c_calls import ENTRIES, NOT_SUPPORTED, DriverError, Int, Pointer, Text, Ulong, callback, put_word
from gemmsim.programs.elf_library import Library, shared_library
from gemmsim.programs.machine import Machine
from gemmsim.support.errors import GemmsimError

_SONAME = "libcuda.so.1"
_SLOTS = 2048  # functions, simulated or not, that programs may ask for; CUDA 13 has about 530
_VERSIONED = ("", "_v2", "_v3", "_v4", "_ptsz", "_v2_ptsz")
_FOUND = 0  # CU_GET_PROC_ADDRESS_SUCCESS


class DriverLibrary:
    """The library in this process. `machine` is what its functions work on."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._slots: dict[str, int] = {}
        self._kept: list[Any] = []
        for name in (*ENTRIES, "cuGetProcAddress"):
            self._slots[name] = len(self._slots)
        exports = {name + version: self._slots[name] for name in ENTRIES for version in _VERSIONED}
        exports["cuGetProcAddress_v2"] = self._slots["cuGetProcAddress"]
        self._library = shared_library(_SONAME, _SLOTS, exports)
        self._base = _loaded(self._library, "cuInit", self._slots["cuInit"])
        self._table = (ctypes.c_uint64 * _SLOTS).from_address(self._base + self._library.table_offset)
        self._table[:] = [self._base + self._library.return_offset] * _SLOTS
        for name, function in (ENTRIES | {"cuGetProcAddress": self._get_proc_address}).items():
            self._set(name, function)
        atexit.register(self._leave)

    def _set(self, name: str, function: Callable[..., None]) -> None:
        kept = callback(function, lambda: self.machine)
        self._kept.append(kept)
        self._table[self._slots[name]] = ctypes.cast(kept, ctypes.c_void_p).value or 0

    def _get_proc_address(
        self, machine: Machine, symbol: Text, function: Pointer, version: Int, flags: Ulong, status: Pointer
    ) -> None:
        name = re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", symbol.decode())
        if name not in self._slots:
            self._slots[name] = len(self._slots)
            self._set(name, partial(_refuse, name))
        put_word(function, self._base + self._library.stub_offset(self._slots[name]))
        if status:
            ctypes.c_int.from_address(status).value = _FOUND

    def _leave(self) -> None:
        """Let every function return success at once: what is freed while Python ends must not call Python."""
        self._table[:] = [self._base + self._library.return_offset] * _SLOTS


def _refuse(name: str, machine: Machine) -> None:
    machine.refused.append(name)
    raise DriverError(NOT_SUPPORTED)


def _loaded(library: Library, symbol: str, slot: int) -> int:
    """Load the library; return its address. Raises GemmsimError where the process cannot have it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise GemmsimError(f"programs run on Linux on x86-64 only, not on {sys.platform} on {platform.machine()}")
    if "libcuda.so" in Path("/proc/self/maps").read_text(encoding="utf-8"):
        raise GemmsimError("this process has loaded NVIDIA's driver already: simulate before anything uses the GPU")
    file = os.memfd_create(_SONAME)
    try:
        os.write(file, library.content)
        loaded = ctypes.CDLL(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    address = ctypes.cast(getattr(loaded, symbol), ctypes.c_void_p).value
    assert address is not None
    return address - library.stub_offset(slot)
