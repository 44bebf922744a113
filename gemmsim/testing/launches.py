"""Defines `Analyzer`, which the fixture `analyze` gives to a test: it makes launches and predicts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypedDict, Unpack

from gemmsim.api import analyze
from gemmsim.cli.compiling import CompileOptions
from gemmsim.cli.options import LaunchOptions
from gemmsim.cli.requests import launch_on
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.python_items import python_arguments
from gemmsim.support.errors import GemmsimError
from gemmsim.testing.trace import Trace

_SUFFIXES = (".cu", ".ptx", ".cubin", ".fatbin", ".so", ".o")


class Options(TypedDict, total=False):
    """Options that a test may give; their names and values are those of `gemmsim analyze`."""

    size: int | None
    m: int | None
    n: int | None
    k: int | None
    dtype: str | None
    entry: str | None
    compiler: str | None
    include: tuple[str, ...]
    define: tuple[str, ...]
    std: str | None
    fast_math: bool
    maxrregcount: int | None
    compile_options: tuple[str, ...]
    shared: int
    verify: str | None
    accumulate: str | None
    reference: tuple[str, ...]
    tolerance: float | None
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
        args: Sequence[object] | Mapping[str, object] = (),
        arrays: Mapping[str, object] | None = None,
        symbols: Mapping[str, object] | None = None,
        tunables: dict[str, int] | None = None,
        gpu: GpuSpec | str | None = None,
        **options: Unpack[Options],
    ) -> Trace:
        """Predict a launch; `options` mean the same as in `gemmsim analyze`.

        kernel   "tiled" (gemmsim list kernels), "my.py:my_gemm", "my.cu", or a numba.cuda function
        args     one for each parameter: text as after --arg ("f32[256,256]", "i32=256", "{...}"), a NumPy array or
                 scalar, a struct (ctypes, structured NumPy, `by_value`), a list of arrays for an array of pointers;
                 or a mapping {name: argument}
        arrays   {name: array} of arrays that are no parameters, but are referred to as "&NAME"
        symbols  {name: content} of variables of the kernel's module that the host sets

        Raises GemmsimError, with one clear line, for a launch that cannot be made or executed.
        """
        name, target = self._name(kernel)
        names = {one.name for one in fields(CompileOptions)}
        typed_options: dict[str, Any] = dict(options)
        compiling = CompileOptions(**{key: typed_options.pop(key) for key in names & typed_options.keys()})
        typed = LaunchOptions(
            target=target,
            kernel=name,
            kernel_sets=tuple(f"{key}={value}" for key, value in (tunables or {}).items()),
            grid=_dims(grid),
            block=_dims(block),
            compiling=compiling,
            **typed_options,
        )
        wanted = self.gpu if gpu is None else gpu
        spec = launch_on(
            load_gpu(wanted) if isinstance(wanted, str) else wanted,
            python_arguments(args, arrays or {}, symbols or {}),
            typed,
        )
        given = (
            *(args.values() if isinstance(args, Mapping) else args),
            *(arrays or {}).values(),
            *(symbols or {}).values(),
        )
        if not all(isinstance(arg, str) for arg in given):
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
