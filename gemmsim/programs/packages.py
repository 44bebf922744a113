"""Says what is changed in packages that a program imports, so that they use the simulated machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmsim.programs.machine import Machine
from gemmsim.programs.on_import import when_imported
from gemmsim.programs.refusals import refused


def adapt_packages(machine: Callable[[], Machine]) -> None:
    """Change numba.cuda, Triton and PyTorch once the program imports them."""

    def numba_dispatcher(module: Any) -> None:
        from gemmsim.programs.numba_toolchain import adapt

        adapt(machine().gpu.arch)

    def triton_driver(module: Any) -> None:
        from gemmsim.programs.triton_driver import TritonDriver

        module.driver.set_active(TritonDriver(machine()))
        from triton._C import libtriton

        from gemmsim.programs.triton_cublas import cublas_class

        if hasattr(libtriton, "nvidia"):
            libtriton.nvidia.cublas.CublasLt = cublas_class(machine)

    def triton_testing(module: Any) -> None:
        from gemmsim.programs.triton_driver import TritonDriver

        module.do_bench = TritonDriver(machine()).do_bench

    def torch(module: Any) -> None:
        from gemmsim.programs.torch_cuda import answer_for
        from gemmsim.programs.torch_tensors import start

        answer_for(module, machine)
        start(machine)

    def proton(module: Any) -> None:
        module.start = refused("Triton's profiler Proton, which measures by CUPTI and which gemmsim does not simulate")

    when_imported(
        {
            "numba.cuda.dispatcher": numba_dispatcher,
            "triton.runtime.driver": triton_driver,
            "triton.testing": triton_testing,
            "triton.profiler": proton,
            "torch": torch,
        }
    )
