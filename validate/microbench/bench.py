"""Runs the kernels of a group on a GPU, and defines `Found`, a value that a group has measured."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES

from .ptx import UNROLLS, WORDS_PER_WARP

if TYPE_CHECKING:
    from ..measure.gpu import Gpu

Raw = dict[str, Any]  # samples, as JSON can hold them


@dataclass(frozen=True)
class Found:
    """One value of a GPU preset.

    key    section and field of GpuSpec, such as "l2.hit_latency_cycles"; "" where no preset has such a field
    value  the value in the field's unit; a list where the field is a tuple
    what   how the value was measured, in words for the GPU file
    """

    key: str
    value: float | list[float]
    what: str


@dataclass(frozen=True)
class Warps:
    """What the warps of a launch wrote: the clock before and after the timed part, and the SM, each as shape [warp]."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    sm: NDArray[np.int64]

    @property
    def cycles(self) -> int:
        """The cycles from the warps' first clock to their last; only for a launch on one SM, as each SM has a clock."""
        return int(self.stop.max() - self.start.min())


class Bench:
    """A GPU with the kernels of the groups loaded.

    A kernel is launched by its entry's name and takes (out, data, count, other), as `ptx` describes; this class makes
    `out`. Grids and blocks have one dimension, and the device array `data` may be None.

    memory_bytes           free device memory
    max_shared_bytes       the most shared memory that a block can have
    dram_peak_bytes_per_s  bandwidth of DRAM, computed from memory clock and bus width; None where they are unknown
    """

    REPEATS = 5

    def __init__(self, gpu: Gpu, modules: Mapping[str, tuple[bytes, list[str]]]) -> None:
        """`modules` holds cubins, each with the names of its entries."""
        self.gpu, self.sms, self.l2_bytes = gpu, gpu.sms, gpu.l2_bytes
        self.max_shared_bytes = gpu.max_shared_bytes
        self.dram_peak_bytes_per_s = gpu.dram_peak_bytes_per_s
        self.memory_bytes = int(gpu.context.get_memory_info().free)
        self._functions = {entry: gpu.load(cubin, entry) for cubin, entries in modules.values() for entry in entries}

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a device array with a copy of `array`."""
        return self.gpu.upload(array)

    def launch(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, shared_bytes: int = 0
    ) -> Warps:
        """Launch a kernel a few times, and return what the warps of the fastest launch wrote.

        The slower launches are dropped, as they waited for something that is not measured, such as a cold cache.
        """
        tries = [self._once(entry, grid, block, data, count, other, shared_bytes) for _ in range(self.REPEATS)]
        return min(tries, key=lambda warps: int((warps.stop - warps.start).max()))

    def launch_words(self, entry: str, data: Any, count: int, words: int) -> NDArray[np.int64]:
        """Launch a kernel on one warp, and return the `words` 64-bit words that it wrote.

        This serves a kernel that writes more than the usual WORDS_PER_WARP words.
        """
        out = self.gpu.upload(np.zeros(words, np.int64))
        self.gpu.launch(self._call(entry, 1, 32, out, data, count, 0, 0))
        self.gpu.synchronize()
        found: NDArray[np.int64] = out.copy_to_host()
        return found

    def _once(self, entry: str, grid: int, block: int, data: Any, count: int, other: int, shared: int) -> Warps:
        out = self._out(grid, block)
        self.gpu.launch(self._call(entry, grid, block, out, data, count, other, shared))
        self.gpu.synchronize()
        words = out.copy_to_host().reshape(-1, WORDS_PER_WARP)
        return Warps(words[:, 0], words[:, 1], words[:, 2])

    def time_us(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, launches: int = 1
    ) -> float:
        """Return the device time of one launch in microseconds.

        The time is the least of a few tries. Each try makes `launches` launches in a row; where that is more than one,
        they are made as a CUDA graph.
        """
        call = self._call(entry, grid, block, self._out(grid, block), data, count, other, 0)

        def launch_all() -> None:
            for _ in range(launches):
                self.gpu.launch(call)

        launch_all()
        self.gpu.synchronize()
        replay = self.gpu.graph(launch_all) if launches > 1 else launch_all
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
        """Return the present SM clock; None where it is unknown."""
        return self.gpu.nvml.clock("sm")

    def _out(self, grid: int, block: int) -> Any:
        return self.gpu.upload(np.zeros(grid * block // WARP_LANES * WORDS_PER_WARP, np.int64))

    def _call(self, entry: str, grid: int, block: int, out: Any, data: Any, count: int, other: int, shared: int) -> Any:
        function = self._functions[entry]
        if shared:
            self.gpu.allow_shared(function, shared)
        pointers = [ctypes.c_void_p(address(array)) for array in (out, data)]
        values = [*pointers, ctypes.c_uint32(count), ctypes.c_uint32(other)]
        return self.gpu.call(function, (grid, 1, 1), (block, 1, 1), shared, values)


def address(array: Any) -> int:
    """Return the address at which a device array begins; 0 for None."""
    return 0 if array is None else int(array.__cuda_array_interface__["data"][0])


def cycles_per_step(bench: Bench, entry: str, block: int, data: Any, count: int) -> float:
    """Return the cycles that one step of an unrolled kernel takes on an SM, without the cycles of the loop.

    They come from the difference of two kernels that repeat the step a different number of times (see `ptx`).
    """
    few, many = (bench.launch(f"{entry}_{n}", 1, block, data, count).cycles for n in UNROLLS)
    return (many - few) / (count * (UNROLLS[1] - UNROLLS[0]))
