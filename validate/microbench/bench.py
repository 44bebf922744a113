"""What a group needs of a GPU, and what it finds."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .ptx import UNROLLS, WORDS_A_WARP

Raw = dict[str, Any]  # samples as JSON has them


@dataclass(frozen=True)
class Found:
    """One value of a GPU preset.

    key    as in GpuSpec, "l2.hit_latency_cycles"; "" where no preset has such a field
    value  in the field's unit, a list where the field is a tuple
    what   how it was measured, for the value's source
    """

    key: str
    value: float | list[float]
    what: str


@dataclass(frozen=True)
class Warps:
    """What each warp of a launch wrote."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    sm: NDArray[np.int64]

    @property
    def cycles(self) -> int:
        """From the first clock of any warp to the last: meaningful within one SM, whose warps share a clock."""
        return int(self.stop.max() - self.start.min())


class Bench(Protocol):
    """A GPU as the groups see it.

    memory_bytes: free; max_shared_bytes: a block's; dram_peak_bytes_per_s: by clock and bus width, None where unknown
    clock_mhz: the SM clock now, None where unknown
    """

    sms: int
    l2_bytes: int
    memory_bytes: int
    max_shared_bytes: int
    dram_peak_bytes_per_s: float | None

    def upload(self, array: NDArray[Any]) -> Any: ...

    def launch(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, shared_bytes: int = 0
    ) -> Warps: ...

    def launch_words(self, entry: str, data: Any, count: int, words: int) -> NDArray[np.int64]: ...

    def time_us(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, launches: int = 1
    ) -> float: ...

    def clock_mhz(self) -> float | None: ...


class GpuBench:
    """A Bench on `measure.gpu.Gpu`; modules: cubins, each with its entries."""

    REPEATS = 5

    def __init__(self, gpu: Any, modules: Mapping[str, tuple[bytes, list[str]]]) -> None:
        self.gpu, self.sms, self.l2_bytes = gpu, gpu.sms, gpu.l2_bytes
        self.max_shared_bytes = gpu.max_shared_bytes
        self.dram_peak_bytes_per_s = gpu.dram_peak_bytes_per_s
        self.memory_bytes = int(gpu.context.get_memory_info().free)
        self._functions = {entry: gpu.load(cubin, entry) for cubin, entries in modules.values() for entry in entries}

    def upload(self, array: NDArray[Any]) -> Any:
        return self.gpu.upload(array)

    def launch(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, shared_bytes: int = 0
    ) -> Warps:
        """Launched a few times; the fastest counts: the others waited for something else, a cold cache for one."""
        tries = [self._once(entry, grid, block, data, count, other, shared_bytes) for _ in range(self.REPEATS)]
        return min(tries, key=lambda warps: int((warps.stop - warps.start).max()))

    def launch_words(self, entry: str, data: Any, count: int, words: int) -> NDArray[np.int64]:
        """All that one warp wrote, of a kernel that writes more than the usual words; launched once."""
        out = self.gpu.upload(np.zeros(words, np.int64))
        self.gpu.launch(self._call(entry, 1, 32, out, data, count, 0, 0))
        self.gpu.synchronize()
        found: NDArray[np.int64] = out.copy_to_host()
        return found

    def _once(self, entry: str, grid: int, block: int, data: Any, count: int, other: int, shared: int) -> Warps:
        out = self.gpu.upload(np.zeros(grid * block // 32 * WORDS_A_WARP, np.int64))
        self.gpu.launch(self._call(entry, grid, block, out, data, count, other, shared))
        self.gpu.synchronize()
        words = out.copy_to_host().reshape(-1, WORDS_A_WARP)
        return Warps(words[:, 0], words[:, 1], words[:, 2])

    def time_us(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, launches: int = 1
    ) -> float:
        """Device time of a launch among `launches` in a row, as a graph where there is more than one; best of a few."""
        out = self.gpu.upload(np.zeros(grid * block // 32 * WORDS_A_WARP, np.int64))
        call = self._call(entry, grid, block, out, data, count, other, 0)

        def some() -> None:
            for _ in range(launches):
                self.gpu.launch(call)

        some()
        self.gpu.synchronize()
        replay = self.gpu.graph(some) if launches > 1 else some
        times = []
        for _ in range(self.REPEATS):
            start, stop = self.gpu.event(), self.gpu.event()
            self.gpu.record(start)
            replay()
            self.gpu.record(stop)
            self.gpu.synchronize()
            times.append(self.gpu.elapsed_us(start, stop) / launches)
        return float(min(times))

    def clock_mhz(self) -> float | None:
        clock = self.gpu.nvml.clock("sm")
        return None if clock is None else float(clock)

    def _call(self, entry: str, grid: int, block: int, out: Any, data: Any, count: int, other: int, shared: int) -> Any:
        function = self._functions[entry]
        if shared:
            self.gpu.allow_shared(function, shared)
        values = [_address(out), _address(data), ctypes.c_uint32(count), ctypes.c_uint32(other)]
        return self.gpu.call(function, (grid, 1, 1), (block, 1, 1), shared, values)


def address(array: Any) -> int:
    """Where a device array begins; 0 for None."""
    return 0 if array is None else int(array.__cuda_array_interface__["data"][0])


def _address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(address(array))


def cycles_a_step(bench: Bench, entry: str, block: int, data: Any, count: int, other: int = 0, grid: int = 1) -> float:
    """Cycles of one step of an unrolled kernel on an SM: the difference of two unrolls, without the loop."""
    few, many = (bench.launch(f"{entry}_{n}", grid, block, data, count, other).cycles for n in UNROLLS)
    return (many - few) / (count * (UNROLLS[1] - UNROLLS[0]))
