"""Says what GPU a machine has, by the driver alone."""

from __future__ import annotations

import ctypes
import statistics
import threading
from typing import Any

from gemmsim.support.errors import GemmsimError

from ..measure.nvml import Nvml

# Values of CUdevice_attribute
_MAJOR, _MINOR, _SMS, _L2_BYTES = 75, 76, 16, 38
_SAMPLE_S = 0.02


class Machine:
    """The first GPU of this machine. Raises GemmsimError where the driver finds none."""

    def __init__(self) -> None:
        try:
            driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise GemmsimError("capturing needs a machine with an NVIDIA GPU; this one has no driver") from None
        device, name, bus = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
        version = ctypes.c_int()
        if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
            raise GemmsimError("capturing needs a machine with an NVIDIA GPU; the driver finds none here")
        driver.cuDeviceGetName(name, 256, device)
        driver.cuDeviceGetPCIBusId(bus, 32, device)
        driver.cuDriverGetVersion(ctypes.byref(version))

        def attribute(number: int) -> int:
            value = ctypes.c_int()
            driver.cuDeviceGetAttribute(ctypes.byref(value), number, device)
            return value.value

        self.nvml = Nvml(bus.value)
        self.name = name.value.decode()
        self.capability = attribute(_MAJOR), attribute(_MINOR)
        self.described: dict[str, Any] = {
            "device": self.name,
            "compute_capability": list(self.capability),
            "driver": self.nvml.driver_version() or "unknown",
            "driver_cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
            "sms": attribute(_SMS),
            "l2_bytes": attribute(_L2_BYTES),
        }
        for key, value in (("max_sm_clock_mhz", self.nvml.max_clock()),
                           ("max_memory_clock_mhz", self.nvml.max_clock("memory"))):  # fmt: skip
            if value is not None:
                self.described[key] = value


class Clocks:
    """Reads the SM clock again and again while its `with` runs: `seen` is then [least, median, most] in MHz, or []."""

    def __init__(self, nvml: Nvml) -> None:
        self.seen: list[float] = []
        self._nvml, self._stop = nvml, threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Clocks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self.seen:
            self.seen = [min(self.seen), statistics.median(self.seen), max(self.seen)]

    def _read(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            if clock := self._nvml.clock():
                self.seen.append(clock)
