"""A driver for Triton, by the interface that Triton has for drivers: it launches on the simulated machine.

Tensors lie in the memory of the host, as there is no other. While a kernel runs, the memory of each tensor that it is
given stands for memory of the device.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gemmsim.programs.allocations import Allocation
from gemmsim.programs.launching import Asked, launch
from gemmsim.programs.machine import Machine, TimedLaunches
from gemmsim.programs.module_calls import load_module, most_threads
from gemmsim.programs.modules import DeviceKernel
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

        return torch.device("cpu")

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

    def do_bench(self, call: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None, **__: Any) -> Any:
        """Return the predicted time of a call in milliseconds, with an empty L2, in the form of Triton's `do_bench`."""
        timed = self.machine.timed
        timed.before, timed.l2 = TimedLaunches.before, None
        begin = self.machine.clock_us
        call()
        elapsed = (self.machine.clock_us - begin) / 1e3
        return [elapsed] * len(quantiles) if quantiles else elapsed


class TritonLauncher:
    """Launches one compiled kernel, as Triton calls it."""

    def __init__(self, machine: Machine, source: Any, metadata: Any) -> None:
        self.machine, self.metadata = machine, metadata
        self.types = list(source.signature.values())
        if any(kind.startswith("tensordesc") for kind in self.types if isinstance(kind, str)):
            raise GemmsimError("tensor descriptors of the host are not simulated for Triton's programs")

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
            given = [*self._parameters(args, held)]
            missing = kernel.program.parameters[len(given) :]  # pointers to scratch memory, where the kernel has none
            if self.metadata.global_scratch_size or self.metadata.profile_scratch_size:
                raise GemmsimError("kernels of Triton that need scratch memory are not simulated")
            given += [bytes(one.size_bytes) for one in missing]
            ctas = getattr(self.metadata, "num_ctas", 1)
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

    def _parameters(self, args: Sequence[Any], held: dict[int, Allocation]) -> Iterator[bytes]:
        """Yield the bytes of each parameter. `held` gets the memory of tensors, by its address on the host."""
        for kind, value in zip(self.types, args, strict=True):
            if kind == "constexpr":
                continue
            if kind.startswith("*"):
                yield struct.pack("<Q", self._address(value, held))
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
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
        if start not in held:
            held[start] = self.machine.memory.register(start, storage.nbytes(), on_host=False)
        return held[start].address + pointer - start
