"""Defines `Analyzer`, which the fixture `analyze` gives to a test: it makes launches and predicts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from gemmsim.api import analyze
from gemmsim.cli.options import LaunchOptions
from gemmsim.cli.requests import launch_on
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.arrays import NUMPY_DTYPES
from gemmsim.launch.notation import parse_argument
from gemmsim.support.errors import GemmsimError
from gemmsim.testing.trace import Trace
from gemmsim.trace.types import Argument

_SUFFIXES = (".cu", ".ptx", ".cubin")


class Options(TypedDict, total=False):
    """Options that a test may give; their names and values are those of `gemmsim analyze`."""

    size: int | None
    m: int | None
    n: int | None
    k: int | None
    dtype: str | None
    entry: str | None
    shared: int
    verify: str | None
    alpha: float
    beta: float
    seed: int
    full: bool
    max_instructions: int | None


@dataclass(frozen=True, repr=False)
class Analyzer:
    """Predicts launches.

    gpu     the GPU to predict for, where a call names no other
    folder  the folder in which a file that a test names is looked for first; next comes the current folder
    known   earlier predictions, by the `repr` of the LaunchSpec; only of launches whose arguments were all given as
            text
    """

    gpu: GpuSpec | str
    folder: Path
    known: dict[str, Trace] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<analyze for {self.gpu if isinstance(self.gpu, str) else self.gpu.name}>"

    def __call__(
        self,
        kernel: str | Callable[..., Any],
        *,
        grid: int | Sequence[int] | None = None,
        block: int | Sequence[int] | None = None,
        args: Sequence[str | NDArray | np.generic] = (),
        tunables: dict[str, int] | None = None,
        gpu: GpuSpec | str | None = None,
        **options: Unpack[Options],
    ) -> Trace:
        """Predict a launch; `options` mean the same as in `gemmsim analyze`.

        kernel   "tiled" (gemmsim list kernels), "my.py:my_gemm", "my.cu", or a numba.cuda function
        args     one for each parameter: "f32[256,256]" (random), "i32=256", a NumPy array or a NumPy scalar

        Raises GemmsimError, with one clear line, for a launch that cannot be made or executed.
        """
        name, target = self._name(kernel)
        typed = LaunchOptions(
            target=target,
            kernel=name,
            kernel_sets=tuple(f"{key}={value}" for key, value in (tunables or {}).items()),
            grid=_dims(grid),
            block=_dims(block),
            **options,
        )
        wanted = self.gpu if gpu is None else gpu
        spec = launch_on(load_gpu(wanted) if isinstance(wanted, str) else wanted, _arguments(args), typed)
        if not all(isinstance(arg, str) for arg in args):
            return Trace(spec, analyze(spec))
        key = repr(spec)
        if key not in self.known:
            self.known[key] = Trace(spec, analyze(spec))
        return self.known[key]

    def _name(self, kernel: str | Callable[..., Any]) -> tuple[str | None, str | None]:
        """Return (name of a built-in kernel, None), or (None, TARGET) for a kernel of the user's own.

        A function, text `FILE.py:function` and the name of a .cu, .ptx or .cubin file stand for a kernel of the user's
        own; any other text is the name of a built-in one.
        """
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
        in_folder = self.folder / file
        return str(in_folder) if in_folder.is_file() else file


def _dims(dims: int | Sequence[int] | None) -> str | None:
    if dims is None:
        return None
    return ",".join(map(str, (dims,) if isinstance(dims, int) else dims))


def _arguments(args: Sequence[str | NDArray | np.generic]) -> list[Argument]:
    return [parse_argument(arg) if isinstance(arg, str) else _argument(arg) for arg in args]


def _argument(value: Any) -> Argument:
    if not isinstance(value, np.ndarray | np.generic):
        form = "text such as 'i32=256', or a NumPy scalar such as np.int32(256)"
        raise GemmsimError(f"argument {value!r}: its type is not known; give {form}, or a NumPy array")
    names = [name for name, known in NUMPY_DTYPES.items() if known == value.dtype and name != "bf16"]
    if not names:
        raise GemmsimError(f"an array of {value.dtype}: known are {', '.join(NUMPY_DTYPES)}")
    return Argument(names[0], value.shape, value if value.shape else value.item())
