"""Gives access to this machine's GPU.

Context, stream, events and arrays come from numba.cuda; cubins are loaded and launched by the driver API.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.tensor_maps import DRIVER_TYPES, SWIZZLES, TYPES, MapFields
from gemmsim.support.errors import GemmsimError

from .nvml import Nvml

_PROMOTION_128B = 2
_RUNTIME = ("numpy", "numba", "numba-cuda", "cuda-bindings", "cuda-core", "torch", "cupy", "nvmath-python")


@dataclass(frozen=True)
class Call:
    """A kernel to launch, with packed arguments; `parameters` keeps alive the values that `pointers` point to.

    cluster  blocks of a cluster, None where the launch asks for none
    """

    function: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    parameters: tuple[Any, ...]
    pointers: Any
    cluster: tuple[int, int, int] | None = None


class Gpu:
    """The current CUDA device. Raises GemmsimError, one line, where there is none or where numba-cuda is missing."""

    def __init__(self) -> None:
        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack  # numba-cuda 0.30 uses it when it is imported; NumPy 2.5 removed it
        try:
            from cuda.bindings import driver
            from numba import cuda
        except ImportError as error:
            raise GemmsimError(f"measuring needs numba-cuda (pip install 'numba-cuda[cu13]'): {error}") from None
        try:
            available = cuda.is_available()
        except Exception:  # a missing or old driver shows in several ways
            available = False
        if not available:
            raise GemmsimError("there is no usable NVIDIA GPU here (numba.cuda finds none); prepare works without one")
        self.cuda, self.driver = cuda, driver
        self.context = cuda.current_context()
        self.stream = cuda.stream()
        self._stream = driver.CUstream(int(self.stream.__cuda_stream__()[1]))
        self._modules: list[Any] = []
        device = cuda.get_current_device()
        attribute = driver.CUdevice_attribute
        handle = driver.CUdevice(device.id)
        read = lambda which: int(self._check(driver.cuDeviceGetAttribute(which, handle)))  # noqa: E731
        self.sms = read(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self.l2_bytes = read(attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        self.max_shared_bytes = read(attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        khz, bits = (
            read(attribute.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            read(attribute.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
        )
        # The driver reports a clock in which memory transfers twice.
        self.dram_peak_bytes_per_s = 2e3 * khz * bits / 8 if khz and bits else None
        major, minor = device.compute_capability[:2]
        self.capability = (int(major), int(minor))
        name = device.name
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        bus = self._check(driver.cuDeviceGetPCIBusId(32, handle))
        self.nvml = Nvml(bytes(bus).split(b"\0")[0])
        version = int(self._check(driver.cuDriverGetVersion()))
        self.machine: dict[str, Any] = {
            "device": self.name,
            "compute_capability": list(self.capability),
            "driver": self.nvml.driver_version() or "unknown",
            "driver_cuda": f"{version // 1000}.{version % 1000 // 10}",
            "sms": self.sms,
            "l2_bytes": self.l2_bytes,
            "runtime": runtime_versions(),
        }
        for key, value in (("max_sm_clock_mhz", self.nvml.max_clock("sm")),
                           ("max_memory_clock_mhz", self.nvml.max_clock("memory"))):  # fmt: skip
            if value is not None:
                self.machine[key] = value

    def _check(self, result: tuple[Any, ...]) -> Any:
        if result[0] != self.driver.CUresult.CUDA_SUCCESS:
            raise GemmsimError(f"the CUDA driver says {str(result[0]).rpartition('.')[2]}")
        return result[1] if len(result) > 1 else None

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a device array with a copy of `array`."""
        return self.cuda.to_device(np.ascontiguousarray(array))

    def duplicate(self, array: Any) -> Any:
        """Return another device array with the contents of the device array `array`."""
        copy = self.cuda.device_array(array.shape, array.dtype)
        copy.copy_to_device(array)
        return copy

    def load(self, cubin: bytes, symbol: str, dynamic_shared_bytes: int = 0) -> Any:
        """Load the kernel `symbol` of a cubin, allow it that much dynamic shared memory, and return its handle."""
        module = self._check(self.driver.cuModuleLoadData(cubin))
        self._modules.append(module)
        function = self._check(self.driver.cuModuleGetFunction(module, symbol.encode()))
        if dynamic_shared_bytes:
            self.allow_shared(function, dynamic_shared_bytes)
        return function

    def allow_shared(self, function: Any, dynamic_shared_bytes: int) -> None:
        """Allow a kernel `dynamic_shared_bytes` of dynamic shared memory.

        The call is needed where static and dynamic shared memory together exceed 48 KiB, and does no harm elsewhere.
        """
        which = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._check(self.driver.cuFuncSetAttribute(function, which, dynamic_shared_bytes))

    def resident_blocks(self, function: Any, threads: int, dynamic_shared_bytes: int) -> int:
        """Return how many blocks of a kernel fit on an SM at once, as the driver says."""
        ask = self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(self._check(ask(function, threads, dynamic_shared_bytes)))

    def call(
        self,
        function: Any,
        grid: Sequence[int],
        block: Sequence[int],
        dynamic_shared_bytes: int,
        parameters: Sequence[Any],
        cluster: Sequence[int] | None = None,
    ) -> Call:
        """Return a launch that can be made many times; `parameters` are ctypes values in the kernel's order."""
        values = tuple(parameters)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        x, y, z = (int(size) for size in grid)
        bx, by, bz = (int(size) for size in block)
        wanted = None if cluster is None else (int(cluster[0]), int(cluster[1]), int(cluster[2]))
        return Call(function, (x, y, z), (bx, by, bz), dynamic_shared_bytes, values, pointers, wanted)

    def tensor_map(self, array: Any, dtype: str, box: Sequence[int]) -> Any:
        """Return the parameter by which TMA copies boxes of a device array in the order of the 128-byte swizzle.

        box  rows and columns, in elements

        It is zeros where TMA cannot access the array, whose rows do not begin at multiples of 16 bytes.
        """
        rows, columns = array.shape
        pitch = columns * array.dtype.itemsize
        if pitch % 16:
            return (ctypes.c_ubyte * 128)()
        fields = MapFields(
            type=TYPES[dtype],
            sizes=(columns, rows),
            strides_bytes=(pitch,),
            box=(box[1], box[0]),
            steps=(1, 1),
            swizzle=SWIZZLES["128B"],
            fill=0,
        )
        content = self.encoded_map(fields, array.__cuda_array_interface__["data"][0], _PROMOTION_128B)
        return (ctypes.c_ubyte * 128).from_buffer_copy(content)

    def encoded_map(self, fields: MapFields, address: int, promotion: int) -> bytes:
        """Return the bytes of a tensor map as the driver encodes it.

        promotion  to L2, a number of CUtensorMapL2promotion
        """
        d = self.driver
        made = self._check(
            d.cuTensorMapEncodeTiled(
                d.CUtensorMapDataType(DRIVER_TYPES.index(fields.type)),
                len(fields.sizes),
                address,
                [d.cuuint64_t(one) for one in fields.sizes],
                [d.cuuint64_t(one) for one in fields.strides_bytes],
                [d.cuuint32_t(one) for one in fields.box],
                [d.cuuint32_t(one) for one in fields.steps],
                d.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                d.CUtensorMapSwizzle(fields.swizzle),
                d.CUtensorMapL2promotion(promotion),
                d.CUtensorMapFloatOOBfill(fields.fill),
            )
        )
        return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)

    def launch(self, call: Call) -> None:
        """Put a launch on the stream."""
        if call.cluster is not None:
            self._launch_clusters(call, call.cluster)
            return
        self._check(
            self.driver.cuLaunchKernel(
                call.function,
                *call.grid,
                *call.block,
                call.dynamic_shared_bytes,
                self._stream,
                ctypes.addressof(call.pointers),
                0,
            )
        )

    def _launch_clusters(self, call: Call, cluster: tuple[int, int, int]) -> None:
        d = self.driver
        attribute, config = d.CUlaunchAttribute(), d.CUlaunchConfig()
        attribute.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = cluster
        config.gridDimX, config.gridDimY, config.gridDimZ = call.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = call.block
        config.sharedMemBytes, config.hStream = call.dynamic_shared_bytes, self._stream
        config.attrs, config.numAttrs = [attribute], 1
        self._check(d.cuLaunchKernelEx(config, call.function, ctypes.addressof(call.pointers), 0))

    def event(self) -> Any:
        """Return an event of numba, for `record`; `elapsed_us` takes two events once the stream is synchronised."""
        return self.cuda.event(timing=True)

    def record(self, event: Any) -> None:
        event.record(self.stream)

    def elapsed_us(self, start: Any, stop: Any) -> float:
        return float(self.cuda.event_elapsed_time(start, stop)) * 1e3

    def done(self, event: Any) -> bool:
        return bool(event.query())

    def synchronize(self) -> None:
        self.stream.synchronize()

    def graph(self, enqueue: Callable[[], None]) -> Callable[[], None]:
        """Capture what `enqueue` puts on the stream as a CUDA graph, and return a function that replays it."""
        mode = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._check(self.driver.cuStreamBeginCapture(self._stream, mode))
        try:
            enqueue()
        finally:
            captured = self.driver.cuStreamEndCapture(self._stream)
        graph = self._check(captured)
        ready = self._check(self.driver.cuGraphInstantiate(graph, 0))

        def replay(_keep: Any = graph) -> None:
            self._check(self.driver.cuGraphLaunch(ready, self._stream))

        return replay

    def unload(self) -> None:
        """Free the modules that were loaded so far."""
        self.synchronize()
        for module in self._modules:
            self._check(self.driver.cuModuleUnload(module))
        self._modules.clear()


def runtime_versions() -> dict[str, str]:
    """Return the versions of Python and of the distributions that run kernels on this machine, by name."""
    versions = {"python": platform.python_version()}
    for name in _RUNTIME:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
