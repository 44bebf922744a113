"""A driver for Triton, by the interface that Triton has for drivers: it launches on the simulated machine.

Tensors of PyTorch are on the simulated GPU where the program puts them there (`programs.torch_tensors`). Of any other
object with `data_ptr` and `untyped_storage`, the memory stands for memory of the device while a kernel runs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gemmsim.programs.allocations import Allocation
from gemmsim.programs.launching import Asked, launch
from gemmsim.programs.machine import Machine, TimedLaunches
from gemmsim.programs.module_calls import load_module, most_threads
from gemmsim.programs.modules import DeviceKernel
from gemmsim.programs.triton_descriptors import descriptor_bytes
from gemmsim.support.errors import GemmsimError

_NUMBERS = {
    **{"i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B", "u16": "H", "u32": "I"},
    **{"u64": "Q", "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d"},
}


class TritonDriver:
    """What Triton asks of a driver (`triton.backends.driver.DriverBase`), for one GPU."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.utils = self

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        """Return what launches a compiled kernel."""
        return TritonLauncher(self.machine, source, metadata)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", int(self.machine.gpu.arch.removeprefix("sm_")), 32)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(int(self.machine.gpu.arch.removeprefix("sm_")), 10)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> None:
        """Return what `clear_cache` takes: nothing, as an empty L2 needs no memory that is written to."""

    def clear_cache(self, cache: None) -> None:
        """Let the next launch begin with an empty L2."""
        timed = self.machine.timed
        timed.before, timed.l2 = TimedLaunches.before, None

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Return what Triton's programs ask for. Clock and width of the memory are in no GPU file."""
        gpu = self.machine.gpu
        return {
            "max_shared_mem": gpu.shared.max_bytes_per_block,
            "max_num_regs": gpu.sm.registers,
            "multiprocessor_count": gpu.sm.count,
            "warpSize": 32,
            "sm_clock_rate": round(gpu.clock.sm_boost_hz / 1000),
        }

    def load_binary(self, name: str, image: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Load a cubin; return (module, function, registers, bytes spilled, most threads of a block)."""
        module = load_module(self.machine, bytes(image))
        kernel = module.kernel(name)
        program, handles = kernel.program, self.machine.handles
        most = most_threads(program, self.machine.gpu)
        return handles.of(module), handles.of(kernel), program.registers, program.local_bytes, most

    def unload_module(self, module: int) -> None:
        self.machine.handles.drop(module)

    def get_benchmarker(self) -> Callable[..., Any]:
        return self.do_bench

    def do_bench(
        self,
        call: Callable[[], Any],
        warmup: float = 0,
        rep: float = 0,
        grad_to_none: Sequence[Any] | None = None,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **_: Any,
    ) -> Any:
        """Return the predicted time of a call in milliseconds, with an empty L2, in the form of Triton's `do_bench`.

        It is NaN where the call launches nothing on the simulated GPU, as functions of PyTorch do not. Launches are
        timed by sample.
        """
        machine = self.machine
        for tensor in grad_to_none or ():
            tensor.grad = None
        self.clear_cache(None)
        begin, launches, before = machine.clock_us, len(machine.launches), machine.benchmarking
        machine.benchmarking = True
        try:
            call()
        finally:
            machine.benchmarking = before
        elapsed = (machine.clock_us - begin) / 1e3 if len(machine.launches) > launches else math.nan
        times = [elapsed] * len(quantiles or "1")
        return times if len(times) > 1 or (return_mode == "all" and not quantiles) else elapsed


class TritonLauncher:
    """Launches one compiled kernel, as Triton calls it."""

    def __init__(self, machine: Machine, source: Any, metadata: Any) -> None:
        self.machine, self.metadata = machine, metadata
        self.types = tuple(source.signature.values())

    def __call__(
        self, x: int, y: int, z: int, stream: int, function: int, packed: Any, metadata: Any, *rest: Any
    ) -> None:
        enter, leave, *args = rest
        if 0 in (x, y, z):
            return
        if enter is not None:
            enter(metadata)
        kernel = self.machine.handles.get(function, DeviceKernel)
        held: dict[int, Allocation] = {}
        try:
            maps = iter(getattr(self.metadata, "tensordesc_meta", None) or ())
            given = [*self._parameters(self.types, args, maps, held)]
            ctas = getattr(self.metadata, "num_ctas", 1)
            missing = kernel.program.parameters[
                len(given) :
            ]  # pointers to scratch memory, of the program and profilers
            scratch = self._scratch(x * y * z * ctas, stream, held)
            given += [scratch if not number else bytes(one.size_bytes) for number, one in enumerate(missing)]
            launch(
                self.machine,
                Asked(
                    kernel,
                    (x * ctas, y, z),
                    (32 * self.metadata.num_warps, 1, 1),
                    tuple(given),
                    self.metadata.shared,
                    (ctas, 1, 1) if ctas > 1 else None,
                    bool(self.metadata.launch_cooperative_grid),
                ),
            )
        finally:
            for one in reversed(held.values()):  # so that the next launch finds each at the address of this one
                self.machine.memory.free(one.address)
        if leave is not None:
            leave(metadata)

    def _scratch(self, blocks: int, stream: int, held: dict[int, Allocation]) -> bytes:
        """Return the address of the memory that the kernel needs besides its tensors, from the program's allocator."""
        if self.metadata.profile_scratch_size:
            raise GemmsimError("kernels of Triton that a profiler has changed are not simulated")
        if not self.metadata.global_scratch_size:
            return bytes(8)
        from triton.runtime import _allocation

        size, alignment = blocks * self.metadata.global_scratch_size, self.metadata.global_scratch_align
        self._kept = _allocation._allocator.get()(size, alignment, stream)
        return struct.pack("<Q", self._address(self._kept, held))

    def _parameters(
        self, types: Sequence[Any], args: Sequence[Any], maps: Iterator[Any], held: dict[int, Allocation]
    ) -> Iterator[bytes]:
        """Yield the bytes of each parameter. `held` gets the memory of tensors, by its address on the host.

        maps  what the compiler says of the tensor map of each tensor descriptor, None for one that needs none
        """
        for kind, value in zip(types, args, strict=True):
            if isinstance(kind, tuple):
                yield from self._parameters(kind, value, maps, held)
            elif kind == "constexpr":
                continue
            elif kind.startswith("tensordesc"):
                yield from descriptor_bytes(value, next(maps, None), self._address(value.base, held))
            elif kind.startswith("*"):
                yield struct.pack("<Q", self._address(value, held))
            elif kind == "bf16":
                yield struct.pack("<f", value)[2:]
            elif kind in _NUMBERS:
                yield struct.pack(f"<{_NUMBERS[kind]}", value)
            else:
                raise GemmsimError(f"a parameter of type {kind} is not simulated for Triton's programs")

    def _address(self, tensor: Any, held: dict[int, Allocation]) -> int:
        if tensor is None:
            return 0
        if isinstance(tensor, int):
            return tensor
        pointer = tensor.data_ptr()
        if not getattr(tensor, "is_cuda", True):
            raise ValueError("a tensor of the host (cpu) is given to a kernel of Triton: put it on cuda")
        if self.machine.memory.find(pointer) is not None or not pointer:
            return int(pointer)
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
        if start not in held:
            held[start] = self.machine.memory.register(start, storage.nbytes(), on_host=False)
        return held[start].address + pointer - start
