"""Answers the calls of cuBLAS that Triton has for its tutorials and tests (`triton._C.libtriton.nvidia.cublas`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmsim.programs.machine import Machine
from gemmsim.support.errors import GemmsimError

NOTE = "calls of cuBLAS by Triton's CublasLt computed on the CPU, take no predicted time and are in no table"


def cublas_class(machine: Callable[[], Machine]) -> type:
    """Return what stands for CublasLt: it multiplies by PyTorch's operators, in float32, rounded at the end."""

    class CublasLt:
        def __init__(self, workspace: Any) -> None:
            pass

        def matmul(self, a: Any, b: Any, c: Any) -> None:
            """Let C be A times the transpose of B."""
            self.gemm(a, b, c, c, 1.0, 0.0)

        def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
            """Let D be alpha times A times the transpose of B, plus beta times C."""
            machine().beside.setdefault(NOTE)
            product = alpha * (a.float() @ b.float().T)
            d.copy_(product + beta * c.float() if beta else product)

        def __getattr__(self, name: str) -> Any:
            raise GemmsimError(f"the program uses {name} of Triton's CublasLt, which gemmsim does not simulate")

    return CublasLt
