"""Reads clocks and the driver's version from NVML. Without NVML, clocks and version are None, and measuring goes on."""

from __future__ import annotations

import ctypes
from typing import Any

_CLOCKS = {"sm": 1, "memory": 2}  # nvmlClockType_t


class Nvml:
    """The device at a PCI bus address (b"00000000:1B:00.0"), as NVML sees it."""

    def __init__(self, bus_id: bytes) -> None:
        self._library: Any = None
        self._device = ctypes.c_void_p()
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0:
            found = library.nvmlDeviceGetHandleByPciBusId_v2(ctypes.c_char_p(bus_id), ctypes.byref(self._device))
            self._library = library if found == 0 else None

    def clock(self, which: str = "sm") -> float | None:
        """Return the present clock in MHz; `which` is "sm" or "memory"."""
        return self._read("nvmlDeviceGetClockInfo", which)

    def max_clock(self, which: str = "sm") -> float | None:
        """Return the highest clock in MHz; `which` is "sm" or "memory"."""
        return self._read("nvmlDeviceGetMaxClockInfo", which)

    def driver_version(self) -> str | None:
        """Return the driver's version, such as "580.159.04"."""
        if self._library is None:
            return None
        text = ctypes.create_string_buffer(96)
        failed = self._library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text)))
        return None if failed else text.value.decode()

    def _read(self, function: str, which: str) -> float | None:
        if self._library is None:
            return None
        value = ctypes.c_uint()
        failed = getattr(self._library, function)(self._device, ctypes.c_int(_CLOCKS[which]), ctypes.byref(value))
        return None if failed else float(value.value)
