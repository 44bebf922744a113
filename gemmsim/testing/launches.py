"""From what a test says of a launch to its prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.api import analyze
from gemmsim.cli.requests import Options, kernel_request, target_request
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.arrays import NUMPY_DTYPES
from gemmsim.launch.request import AnalyzeRequest
from gemmsim.support.errors import GemmsimError
from gemmsim.testing.trace import Trace
from gemmsim.trace.types import Argument

_SUFFIXES = (".cu", ".ptx", ".cubin")


@dataclass(frozen=True, repr=False)
class Analyzer:
    """Predicts launches for one GPU; `folder`: where files named by tests are looked for first; `known`: predictions of
    launches that were asked for before, where all of their arguments are given as text."""

    gpu: GpuSpec | str
    folder: Path
    known: dict[Any, Trace] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<analyze for {self.gpu if isinstance(self.gpu, str) else self.gpu.name}>"

    def __call__(
        self,
        kernel: str | Callable[..., Any],
        *,
        size: int | None = None,
        m: int | None = None,
        n: int | None = None,
        k: int | None = None,
        dtype: str | None = None,
        tunables: dict[str, int] | None = None,
        grid: int | Sequence[int] | None = None,
        block: int | Sequence[int] | None = None,
        args: Sequence[str | NDArray | np.generic] = (),
        entry: str | None = None,
        shared: int = 0,
        verify: str | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        seed: int = 0,
        full: bool = False,
        max_instructions: int | None = None,
        gpu: GpuSpec | str | None = None,
    ) -> Trace:
        """Predict a launch; the options mean what they mean to `gemmsim analyze`.

        kernel   "tiled" (gemmsim list kernels), "my.py:my_gemm", "my.cu", or a numba.cuda function
        args     one a parameter: "f32[256,256]" (random), "i32=256", a NumPy array or a NumPy scalar

        Raises GemmsimError, with one clear line, for whatever cannot be.
        """
        name, target = self._name(kernel)
        options = Options(
            target=target,
            kernel=name,
            entry=entry,
            size=size,
            m=m,
            n=n,
            k=k,
            gpu="a100-80gb",  # a placeholder: see below
            gpu_sets=(),
            kernel_sets=tuple(f"{key}={value}" for key, value in (tunables or {}).items()),
            alpha=alpha,
            beta=beta,
            grid=_dims(grid),
            block=_dims(block),
            shared=shared,
            args=tuple(arg if isinstance(arg, str) else _as_text(arg) for arg in args),
            verify=verify,
            full=full,
            max_instructions=max_instructions,
            seed=seed,
            no_cache=False,
            dtype=dtype,
        )
        wanted = self.gpu if gpu is None else gpu
        spec = load_gpu(wanted) if isinstance(wanted, str) else wanted
        if not all(isinstance(arg, str) for arg in args):
            return _predicted(_request(options, spec, args))
        key = options, spec.name, repr(spec)
        if key not in self.known:
            self.known[key] = _predicted(_request(options, spec, args))
        return self.known[key]

    def _name(self, kernel: str | Callable[..., Any]) -> tuple[str | None, str | None]:
        """(built-in kernel, None) or (None, target)."""
        if not isinstance(kernel, str):
            function = getattr(kernel, "py_func", kernel)
            code = getattr(function, "__code__", None)
            if code is None:
                raise GemmsimError(f"{kernel!r} is neither a kernel's name nor a numba.cuda function")
            return None, f"{code.co_filename}:{function.__name__}"
        file, colon, function_name = kernel.rpartition(":")
        if colon and file.endswith(".py"):
            return None, f"{self._path(file)}:{function_name}"
        return (None, self._path(kernel)) if kernel.endswith(_SUFFIXES) else (kernel, None)

    def _path(self, file: str) -> str:
        beside = self.folder / file
        return str(beside) if beside.is_file() else file


def _request(options: Options, gpu: GpuSpec, args: Sequence[Any]) -> AnalyzeRequest:
    request = kernel_request(options) if options.kernel else target_request(options)
    values = [
        given if isinstance(arg, str) else Argument(given.dtype, given.shape, arg if given.shape else arg.item())
        for arg, given in zip(args, request.launch.args, strict=False)
    ]
    launch = replace(request.launch, args=tuple(values)) if options.args else request.launch
    return replace(request, launch=launch, gpu=gpu)


def _predicted(request: AnalyzeRequest) -> Trace:
    return Trace(request, analyze(request))


def _dims(dims: int | Sequence[int] | None) -> str | None:
    if dims is None:
        return None
    return ",".join(map(str, (dims,) if isinstance(dims, int) else dims))


def _as_text(value: Any) -> str:
    """An argument of the same type and shape, as text."""
    if not isinstance(value, np.ndarray | np.generic):
        form = "text such as 'i32=256', or a NumPy scalar such as np.int32(256)"
        raise GemmsimError(f"argument {value!r}: its type is not known; give {form}, or a NumPy array")
    names = [name for name, known in NUMPY_DTYPES.items() if known == value.dtype and name != "bf16"]
    if not names:
        raise GemmsimError(f"an array of {value.dtype}: known are {', '.join(NUMPY_DTYPES)}")
    shape = f"[{','.join(map(str, value.shape))}]" if value.shape else ""
    return f"{names[0]}{shape}=0"
