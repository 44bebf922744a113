"""A GPU that is none: launches read their parameters as numba kernels would and compute C in NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

LAUNCH_US = 100.0


class FakeArray:
    def __init__(self, values: np.ndarray) -> None:
        self.values = np.array(values, order="C")
        self.shape, self.dtype = self.values.shape, self.values.dtype
        self.__cuda_array_interface__ = {"data": (self.values.ctypes.data, False)}

    def copy_to_host(self) -> np.ndarray:
        return self.values.copy()


class FakeGpu:
    """broken: symbol of a kernel whose launches fail; wrong: of one that leaves C[0, 0] unwritten."""

    def __init__(
        self, capability: tuple[int, int] = (9, 0), broken: str = "", wrong: str = "", launch_us: float = LAUNCH_US
    ) -> None:
        self.capability, self.broken, self.wrong, self.launch_us = capability, broken, wrong, launch_us
        self.name, self.sms, self.l2_bytes, self.max_shared_bytes = "Fake GPU", 4, 1 << 20, 100 << 10
        self.machine = {"device": self.name, "compute_capability": list(capability), "driver": "1.0"}
        self.nvml = SimpleNamespace(clock=lambda which: 1500.0)
        self.context = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(free=1 << 30))
        self.now_us, self.launches, self.asked_done = 0.0, [], 0
        self.shared_limit: dict[str, int] = {}
        self._captured: list[Callable[[], None]] | None = None

    def upload(self, array: np.ndarray) -> FakeArray:
        return FakeArray(array)

    def duplicate(self, array: FakeArray) -> FakeArray:
        return FakeArray(array.values)

    def load(self, cubin: bytes, symbol: str, shared: int = 0) -> str:
        assert cubin[:4] == b"\x7fELF"
        return symbol

    def unload(self) -> None: ...

    def allow_shared(self, function: str, shared: int) -> None:
        self.shared_limit[function] = shared

    def resident_blocks(self, function: str, threads: int, shared: int) -> int:
        return min(2048 // threads, (100 << 10) // (shared + 1024))

    def call(self, function: str, grid: Any, block: Any, shared: int, values: Any, cluster: Any = None) -> Any:
        return SimpleNamespace(function=function, grid=grid, block=block, shared=shared, values=tuple(values))

    def launch(self, call: Any) -> None:
        if self._captured is not None:
            self._captured.append(lambda: self.launch(call))
            return
        if self.broken and self.broken in call.function:
            raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED\nand more lines")
        self.launches.append(call)
        self.now_us += self.launch_us
        if call.function == "placement":
            address, _ = call.values
            blocks = int(np.prod(call.grid))
            at(address.value, np.int32, (blocks,))[:] = np.arange(blocks) % self.sms
        else:
            gemm(call, bool(self.wrong) and self.wrong in call.function)

    def event(self) -> dict[str, float]:
        return {}

    def record(self, event: dict[str, float]) -> None:
        event["us"] = self.now_us

    def elapsed_us(self, start: dict[str, float], stop: dict[str, float]) -> float:
        return stop["us"] - start["us"]

    def done(self, event: dict[str, float]) -> bool:
        self.asked_done += 1
        return self.asked_done % 3 == 0

    def synchronize(self) -> None: ...

    def graph(self, enqueue: Callable[[], None]) -> Callable[[], None]:
        self._captured = []
        enqueue()
        captured, self._captured = self._captured, None

        def replay() -> None:
            for launch in captured:
                launch()

        return replay


def at(address: int, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array on memory that somebody else owns."""
    count = int(np.prod(shape))
    raw = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(raw, dtype).reshape(shape)


def gemm(call: Any, wrong: bool) -> None:
    """C = alpha A @ B by the words that numba passes: meminfo, parent, items, item size, data, shape, strides."""
    words = [value.value for value in call.values]
    arrays = []
    for i in range(3):
        meminfo, parent, items, item, data, rows, columns, row_stride, column_stride = words[9 * i : 9 * i + 9]
        assert (meminfo, parent) == (None, None) and items == rows * columns
        assert (row_stride, column_stride) == (columns * item, item)
        arrays.append(at(data, {2: np.float16, 4: np.float32, 8: np.float64}[item], (rows, columns)))
    alpha, beta = words[27:29]
    assert (alpha, beta) == (1.0, 0.0) and len(words) == 29
    a, b, c = arrays
    c[:] = (a.astype(np.float64) @ b.astype(np.float64)).astype(c.dtype)
    if wrong:
        c[0, 0] = np.nan
