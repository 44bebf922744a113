"""Runs cuBLAS on a case's operands, through the first of nvmath-python, PyTorch and CuPy that is installed."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from .gpu import Gpu

BINDINGS = {"nvmath": "nvmath-python", "torch": "torch", "cupy": "cupy"}
_TYPES = {"f16": "R_16F", "bf16": "R_16BF", "f32": "R_32F", "f64": "R_64F", "i8": "R_8I", "i32": "R_32I"}
_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT


class Library:
    """Calls cuBLAS through a Python binding.

    version  distribution and version of the binding
    """

    def __init__(self, gpu: Gpu) -> None:
        """Choose the first binding that is installed. Raises GemmsimError, one line, where none is."""
        for module, distribution in BINDINGS.items():
            try:
                self._module = importlib.import_module(module)
            except ImportError:
                continue
            self._name, self._gpu, self._handle = module, gpu, None
            try:
                self.version = f"{distribution} {importlib.metadata.version(distribution)}"
            except importlib.metadata.PackageNotFoundError:  # the distribution has another name, such as cupy-cuda13x
                self.version = f"{distribution} {getattr(self._module, '__version__', '')}".strip()
            return
        raise GemmsimError("cublas needs a binding: install nvmath-python, CuPy or PyTorch")

    def gemm(self, name: str, problem: Mapping[str, Any], arrays: Mapping[str, Any]) -> Callable[[], None]:
        """Return a function that enqueues C = A @ B on the GPU's stream; `name` is "cublas" or "cublas_tf32"."""
        if self._name == "nvmath":
            return self._by_nvmath(name, problem, arrays)
        if self._name == "cupy":
            return self._by_cupy(name, problem, arrays)
        return self._by_torch(name, problem, arrays)

    def _by_torch(self, name: str, problem: Mapping[str, Any], arrays: Mapping[str, Any]) -> Callable[[], None]:
        torch = self._module
        torch.backends.cuda.matmul.allow_tf32 = name == "cublas_tf32"
        stream = torch.cuda.ExternalStream(int(self._gpu.stream.__cuda_stream__()[1]))
        a, b, c = (_as_tensor(torch, arrays[key], problem, key) for key in "ABC")
        one = torch.ones((), device="cuda") if problem["dtype"] == "e4m3" else None  # the scales of A and B

        def go() -> None:
            with torch.cuda.stream(stream):
                if problem["dtype"] == "i8":
                    torch._int_mm(a, b, out=c)
                elif problem["dtype"] == "e4m3":
                    torch._scaled_mm(a, b.t(), one, one, out_dtype=c.dtype, use_fast_accum=True, out=c)
                else:
                    torch.matmul(a, b, out=c)

        return go

    def _by_cupy(self, name: str, problem: Mapping[str, Any], arrays: Mapping[str, Any]) -> Callable[[], None]:
        cupy = self._module
        if problem["dtype"] in ("bf16", "e4m3", "i8") or name == "cublas_tf32":
            raise GemmsimError(f"CuPy offers no {name} of {problem['dtype']}: install nvmath-python or PyTorch")
        stream = cupy.cuda.ExternalStream(int(self._gpu.stream.__cuda_stream__()[1]))
        a, b, c = (cupy.asarray(arrays[key]) for key in "ABC")

        def go() -> None:
            with stream:
                cupy.matmul(a, b, out=c)

        return go

    def _by_nvmath(self, name: str, problem: Mapping[str, Any], arrays: Mapping[str, Any]) -> Callable[[], None]:
        if problem["dtype"] == "e4m3":
            raise GemmsimError("cublas of e4m3 is called by PyTorch only: uninstall nvmath-python")
        cublas = importlib.import_module("nvmath.bindings.cublas")
        kinds = importlib.import_module("nvmath").CudaDataType
        if self._handle is None:
            self._handle = cublas.create()
            cublas.set_stream(self._handle, int(self._gpu.stream.__cuda_stream__()[1]))
        handle = self._handle
        m, n, k = (problem[key] for key in ("m", "n", "k"))
        kind, result = (getattr(kinds, f"CUDA_{_TYPES[problem[key]]}") for key in ("dtype", "result_dtype"))
        compute, scalar = {
            "f64": (cublas.ComputeType.COMPUTE_64F, np.float64),
            "i8": (cublas.ComputeType.COMPUTE_32I, np.int32),
        }.get(problem["dtype"], (cublas.ComputeType.COMPUTE_32F, np.float32))
        if name == "cublas_tf32":
            compute = cublas.ComputeType.COMPUTE_32F_FAST_TF32
        one, zero = np.ones(1, scalar), np.zeros(1, scalar)
        a, b, c = (arrays[key].__cuda_array_interface__["data"][0] for key in "ABC")
        plain = cublas.Operation.N

        def go() -> None:
            # cuBLAS is column-major, so it computes the transposed product of the row-major matrices, with B first.
            cublas.gemm_ex(
                handle, plain, plain, n, m, k, one.ctypes.data, b, kind, n, a, kind, k, zero.ctypes.data,
                c, result, n, compute, _ALGORITHM,
            )  # fmt: skip

        return go


def _as_tensor(torch: Any, array: Any, problem: Mapping[str, Any], name: str) -> Any:
    """Return a PyTorch tensor that shares the memory of a device array of numba, which holds bf16 and fp8 as bit
    patterns."""
    dtype = problem["result_dtype" if name == "C" else "dtype"]
    if dtype == "bf16":
        return torch.as_tensor(array.view(np.int16), device="cuda").view(torch.bfloat16)
    tensor = torch.as_tensor(array, device="cuda")
    return tensor.view(torch.float8_e4m3fn) if dtype == "e4m3" else tensor
