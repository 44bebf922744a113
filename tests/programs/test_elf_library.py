"""The shared library that is written without a compiler loads, and its functions go where its table says."""

from __future__ import annotations

import ctypes
import os

from gemmsim.programs.elf_library import shared_library


def test_functions_jump_through_the_table() -> None:
    library = shared_library("libgemmsim-test.so.7", 3, {"first": 0, "also_first": 0, "last": 2})
    file = os.memfd_create("test")
    os.write(file, library.content)
    loaded = ctypes.CDLL(f"/proc/self/fd/{file}")
    base = ctypes.cast(loaded.first, ctypes.c_void_p).value - library.stub_offset(0)
    assert ctypes.cast(loaded.also_first, ctypes.c_void_p).value == base + library.stub_offset(0)
    assert ctypes.cast(loaded.last, ctypes.c_void_p).value == base + library.stub_offset(2)
    table = (ctypes.c_uint64 * 3).from_address(base + library.table_offset)
    add = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)(lambda a, b: 10 * a + b)
    table[:] = [ctypes.cast(add, ctypes.c_void_p).value, 0, base + library.return_offset]
    assert loaded.first(4, 2) == loaded.also_first(4, 2) == 42
    assert loaded.last(4, 2) == 0
    # The loader takes it for any library of that name, without a file.
    assert ctypes.CDLL("libgemmsim-test.so.7").first(1, 1) == 11
    assert not hasattr(loaded, "middle")
