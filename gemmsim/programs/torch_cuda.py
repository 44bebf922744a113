"""Answers for `torch.cuda`: what PyTorch says of its GPU, and its streams and events, for the simulated machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from gemmsim.programs.machine import Machine
from gemmsim.programs.refusals import refused

_OWN_KERNELS = (
    "PyTorch's own CUDA code, which gemmsim does not simulate: PyTorch computes on the CPU here; kernels of Triton, "
    "numba.cuda and cuda.core run on its tensors"
)


def answer_for(torch: Any, machine: Callable[[], Machine]) -> None:
    """Change the functions of `torch.cuda` that ask for the GPU or order its work."""
    cuda = torch.cuda
    for name, value in (_answers(machine) | _classes(machine)).items():
        setattr(cuda, name, value)
    cuda._lazy_init = refused(_OWN_KERNELS)
    for name in ("CUDAGraph", "graph", "make_graphed_callables"):
        setattr(cuda, name, refused("CUDA graphs of PyTorch, which gemmsim does not simulate"))
    for name in ("MemPool", "use_mem_pool", "graph_pool_handle", "change_current_allocator"):
        setattr(cuda, name, refused("memory pools of PyTorch, which gemmsim does not simulate"))


def _properties(machine: Machine) -> SimpleNamespace:
    gpu = machine.gpu
    major, minor = _capability(machine)
    return SimpleNamespace(
        name=gpu.title,
        major=major,
        minor=minor,
        total_memory=gpu.dram.size_bytes,
        multi_processor_count=gpu.sm.count,
        max_threads_per_multi_processor=32 * gpu.sm.max_warps,
        max_threads_per_block=gpu.sm.max_threads_per_block,
        regs_per_multiprocessor=gpu.sm.registers,
        shared_memory_per_block=gpu.shared.default_max_bytes_per_block,
        shared_memory_per_block_optin=gpu.shared.max_bytes_per_block,
        shared_memory_per_multiprocessor=gpu.shared.max_bytes_per_sm,
        L2_cache_size=gpu.l2.size_bytes,
        warp_size=32,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def _capability(machine: Machine) -> tuple[int, int]:
    return divmod(int(machine.gpu.arch.removeprefix("sm_").rstrip("af")), 10)


def _answers(machine: Callable[[], Machine]) -> dict[str, Callable[..., Any]]:
    def free_and_total(*_: Any) -> tuple[int, int]:
        memory = machine().memory
        return memory.limit_bytes - memory.used_bytes, memory.limit_bytes

    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "is_current_stream_capturing": lambda: False,
        "is_bf16_supported": lambda *_, **__: _capability(machine()) >= (8, 0),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "device": lambda device: nullcontext(),
        "get_device_name": lambda device=None: machine().gpu.title,
        "get_device_capability": lambda device=None: _capability(machine()),
        "get_device_properties": lambda device=None: _properties(machine()),
        "get_arch_list": lambda: [machine().gpu.arch],
        "can_device_access_peer": lambda device, peer: False,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "mem_get_info": free_and_total,
    }


def _classes(machine: Callable[[], Machine]) -> dict[str, Any]:
    """Return streams and events. A launch has ended when the call that makes it returns."""

    class Stream:
        cuda_stream, device_index = 0, 0

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def synchronize(self) -> None:
            pass

        def wait_stream(self, stream: Any) -> None:
            pass

        def wait_event(self, event: Any) -> None:
            pass

        def query(self) -> bool:
            return True

        def record_event(self, event: Any = None) -> Any:
            event = Event() if event is None else event
            event.record(self)
            return event

        def __enter__(self) -> Stream:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    class Event:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.recorded_us: float | None = None

        def record(self, stream: Any = None) -> None:
            self.recorded_us = machine().clock_us

        def synchronize(self) -> None:
            pass

        def wait(self, stream: Any = None) -> None:
            pass

        def query(self) -> bool:
            return True

        def elapsed_time(self, end: Event) -> float:
            """Return the predicted time from this event to `end`, in milliseconds."""
            if self.recorded_us is None or end.recorded_us is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            return (end.recorded_us - self.recorded_us) / 1e3

    usual = Stream()
    return {
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "current_stream": lambda device=None: usual,
        "default_stream": lambda device=None: usual,
        "set_stream": lambda stream: None,
        "stream": lambda stream: nullcontext(stream),
    }
